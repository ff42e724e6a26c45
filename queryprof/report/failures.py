"""What a person reads when a test asks more of the database than it may."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable

from queryprof.analysis.baseline import Deviation, Figures, Site, TestFigures
from queryprof.model import Step
from queryprof.report.inert import visible
from queryprof.report.plan_words import plan_change, plans_before_and_after
from queryprof.report.units import duration, percent

SHOWN_SITES = 3
LONGEST_STATEMENT = 300


def regression_message(test: str, found: Iterable[Deviation]) -> str:
    """Why a test failed against its baseline: each statement before and after, and its lines."""
    parts = [[f"{test} asks more of the database than its baseline:"]]
    parts += [_deviation(deviation) for deviation in found]
    parts.append(
        ["If that is meant, accept it: pytest --queryprof-save (and commit the baseline)."]
    )
    return _text(*parts)


def budget_message(test: str, exceeded: Iterable[tuple[str, TestFigures]]) -> str:
    """Why a budget is exceeded, with the queries that did it."""
    parts = [[f"{test} exceeds its budget:" if test else "the budget is exceeded:"]]
    parts += [[reason, *_query_lines(figures)] for reason, figures in exceeded]
    return _text(*parts)


def stall_message(test: str, budget: str, stalls: Iterable[Step]) -> str:
    """Why an event loop stood still for too long, with what ran."""
    lines = [f"  {duration(step.durations.max_ns):>8}  {stall_line(step)}" for step in stalls]
    advice = "Move what waits or computes off the loop (aiosqlite, or asyncio.to_thread)."
    head = f"{test} keeps its event loop standing still, {budget}:"
    return _text([head], lines, [advice])


def slower_message(test: str, ns: int, longest_ns: int, figures: TestFigures) -> str:
    """Why a test failed for its database time, with what it asked."""
    head = (
        f"{test} was {duration(ns)} in the database, and never more than {duration(longest_ns)} in"
        " its earlier runs on this machine:"
    )
    return _text([head, *_query_lines(figures)])


def stall_line(step: Step) -> str:
    """What ran without a break, and what of it was the database."""
    line = f"{step.function.function} {_file(step.function.file)}:{step.function.line}"
    if step.causes and step.durations.total_ns:
        cause = max(step.causes, key=lambda c: c.ns)
        share = percent(cause.ns / step.durations.total_ns)
        line += f", {share} of it in {_cut(cause.statement)}"
        if cause.path:
            line += f" at {_file(cause.path[0].file)}:{cause.path[0].line}"
    return line


def _text(*parts: Iterable[str]) -> str:
    """Parts with an empty line between them; each of their strings is one line."""
    return "\n\n".join("\n".join(visible(line) for line in part) for part in parts)


def _query_lines(figures: TestFigures) -> list[str]:
    """The queries, most executions first, each with the lines that asked."""
    lines = []
    for statement, one in sorted(figures.items(), key=lambda item: -item[1].executions):
        lines.append(f"  {one.executions:>5} x {_cut(statement)}")
        lines += [line for site in one.sites[:SHOWN_SITES] for line in _site(site)]
    return lines


def _deviation(deviation: Deviation) -> list[str]:
    lines = [f"  {_cut(deviation.statement)}", f"    {', '.join(deviation.reasons)}:"]
    for name in ("executions", "rows", "vm_steps", "full_scan_steps"):
        before = getattr(deviation.before, name, None)
        after = getattr(deviation.after, name, None)
        if before != after and after is not None:
            was = "not there" if deviation.before is None else f"{before:,}" if before else "0"
            lines.append(f"      {name.replace('_', ' '):<16} {was:>10} -> {after:,}")
    after_figures = deviation.after
    if after_figures is not None:
        if deviation.before is not None:
            lines += [
                f"      {line}"
                for line in plans_before_and_after(deviation.before.plans, after_figures.plans)
            ]
        lines += [line for site in after_figures.sites[:SHOWN_SITES] for line in _site(site)]
        meaning = _meaning(deviation.before, after_figures)
        if meaning:
            lines.append(f"    {meaning}")
    return lines


def _meaning(before: Figures | None, after: Figures) -> str:
    """What such a change usually is."""
    if before is None:
        return (
            f"{after.repeats} times from one line: is it in a loop that one query could replace?"
            if after.repeats > 1
            else ""
        )
    changed_plan = plan_change(before.plans, after.plans)
    if changed_plan:
        return changed_plan[0].upper() + changed_plan[1:]
    if after.full_scan_steps and not before.full_scan_steps:
        return (
            "It scans a table that it searched before: is an index gone, or is there a function"
            " or another collation around the column?"
        )
    if after.executions > before.executions:
        return "It runs more often: a loop around it, or a prefetch that is gone?"
    if after.rows > before.rows:
        return "It returns more rows: is a WHERE or LIMIT gone?"
    return "It takes more work for the same rows: has its plan, an index or a sort changed?"


def _site(site: Site) -> list[str]:
    frame = site.frame
    if frame is None:
        return [f"          {site.executions} x from an unknown place"]
    line = f"          {site.executions} x {frame.function} {_file(frame.file)}:{frame.line}"
    if site.caller:
        line += f"  <- {site.caller.function} {_file(site.caller.file)}:{site.caller.line}"
    source = _source(frame.file, frame.line)
    return [line, f"              {source}"] if source else [line]


def _source(file: str, line: int) -> str:
    """A line of source; empty when there is none."""
    try:
        return linecache.getline(file, line).strip()
    except ValueError:  # no file can have such a name
        return ""


def _file(path: str) -> str:
    inside = os.path.join(os.getcwd(), "")
    return path.removeprefix(inside)


def _cut(statement: str) -> str:
    return (
        statement if len(statement) <= LONGEST_STATEMENT else statement[:LONGEST_STATEMENT] + "..."
    )
