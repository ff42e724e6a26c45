"""The messages of tests that do more in the database than they may."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queryprof.analysis.baseline_deviations import Deviation
from queryprof.analysis.baseline_figures import Figures, TestFigures
from queryprof.analysis.findings.finding import CATEGORIES, Finding
from queryprof.analysis.units import duration, percent
from queryprof.model import BASELINE_FIGURES, LockTime, Step
from queryprof.report.inert import visible
from queryprof.report.places import numbered
from queryprof.report.text.causes import cut, file_of, site_lines

UNITS = {"vm_steps": "VM steps"}

SHOWN_STATEMENTS, SHOWN_QUERIES = 5, 20
SHOWN_SITES = 3


@dataclass(frozen=True, slots=True)
class Excess:
    """One budget that is exceeded.

    Attributes:
        figures: of the statements that it is about.
        shown: what is shown of each, a field of Figures: rows, vm_steps or plans; "": nothing more.
    """

    reason: str
    figures: TestFigures
    shown: str = ""


# The first line is what pytest shows beside the test's name at the end of a run.


def regression_message(found: Sequence[Deviation]) -> str:
    """Why a test failed against its baseline: each statement with what is worse, and its line.
    Possible reasons are shown at the end of the run, once for all tests (causes.py).
    """
    reasons = dict.fromkeys(reason for deviation in found for reason in deviation.reasons)
    lines = [f"more in the database than in the baseline: {', '.join(reasons)}"]
    for deviation in found[:SHOWN_STATEMENTS]:
        lines += _deviation(deviation)
    if len(found) > SHOWN_STATEMENTS:
        lines.append(f"  ... and {len(found) - SHOWN_STATEMENTS} more statements")
    return _text(lines)


def budget_message(exceeded: Iterable[Excess]) -> str:
    """Why budgets are exceeded, with the queries that exceed them."""
    parts = [
        [f"over budget: {one.reason}:", *_query_lines(one.figures, one.shown)] for one in exceeded
    ]
    return _text(*parts)


def fault_message(found: Sequence[Finding]) -> str:
    """Why a test failed for findings: each with its statement, its line and its fix."""
    if not found:
        return ""
    names = ", ".join(f"{one.category} at {_place(one)}" for one in found)
    return _text([names], *map(_fault, found))


def _place(found: Finding) -> str:
    frame = found.site.frame
    return numbered(os.path.basename(frame.file), frame.line) if frame else "?"


def _fault(found: Finding) -> list[str]:
    frame = found.site.frame
    place = f"{frame.function} {numbered(file_of(frame.file), frame.line)}" if frame else "?"
    code = "\n".join(filter(None, (found.code, found.migration))).splitlines()
    return [
        f"{place}: {CATEGORIES[found.category].title}",
        f"  {cut(found.statement)}",
        *(f"  {line}" for line in found.evidence),
        f"  -> {found.fix}",
        *(f"     {line}" for line in code),
        f"  {found.identity}: docs/findings.md#{found.category}",
    ]


def stall_message(budget: str, stalls: Iterable[Step]) -> str:
    """Why an event loop stalled for too long, with the steps that ran."""
    lines = [f"  {duration(step.durations.max_ns):>8}  {stall_line(step)}" for step in stalls]
    advice = "Move what waits or computes off the loop (aiosqlite, or asyncio.to_thread)."
    head = f"an event loop stalled, {budget}:"
    return _text([head], lines, [advice])


def lock_message(budget: str, found: Iterable[LockTime]) -> str:
    """Why a lock was waited for, or held, for too long, with the statements and lines."""
    lines = []
    for one in found:
        frame = one.path[0] if one.path else None
        at = f" at {os.path.basename(frame.file)}:{frame.line}" if frame else ""
        lines.append(f"  {duration(one.max_ns):>8}  {one.statement}{at}")
    head = f"over budget of a lock: {budget}:"
    return _text([head], lines)


def slower_message(ns: int, longest_ns: int, figures: TestFigures) -> str:
    """Why a test failed for its database time, with its queries."""
    head = (
        f"{duration(ns)} in the database, and never more than {duration(longest_ns)} in earlier"
        " runs on this machine:"
    )
    return _text([head, *_query_lines(figures)])


def stall_line(step: Step) -> str:
    """What ran without a break, and how much of it was database time."""
    line = f"{step.function.function} {numbered(file_of(step.function.file), step.function.line)}"
    if step.causes and step.durations.total_ns:
        cause = max(step.causes, key=lambda c: c.ns)
        share = percent(cause.ns / step.durations.total_ns)
        line += f", {share} of it in {cut(cause.statement)}"
        if cause.path:
            line += f" at {numbered(file_of(cause.path[0].file), cause.path[0].line)}"
    return line


def _text(*parts: Iterable[str]) -> str:
    """Parts with an empty line between them; each of their strings is one line."""
    return "\n\n".join("\n".join(visible(line) for line in part) for part in parts)


def _query_lines(figures: TestFigures, shown: str = "") -> list[str]:
    """The queries, most executions (or of the figure that is shown) first, each with the lines that
    ran it.
    """

    def most(one: Figures) -> int:
        value = getattr(one, shown, None) if shown else None
        return value if isinstance(value, int) else one.executions

    lines = []
    ranked = sorted(figures.items(), key=lambda item: -most(item[1]))
    for statement, one in ranked[:SHOWN_QUERIES]:
        lines.append(f"  {one.executions:>5} x {cut(statement)}")
        if shown == "plans":
            lines += [f"          plan  {step}" for plan in one.plans for step in plan]
        elif shown and getattr(one, shown) is not None:
            lines.append(
                f"          {getattr(one, shown):,} {shown.replace('vm_steps', 'VM steps')}"
            )
        for site in one.sites[:SHOWN_SITES]:
            lines += [f"          {line}" for line in site_lines(site)]
    if len(ranked) > SHOWN_QUERIES:
        lines.append(f"  ... and {len(ranked) - SHOWN_QUERIES:,} more statements")
    return lines


def _deviation(deviation: Deviation) -> list[str]:
    changes = [r for r in deviation.reasons if r.startswith("a ")]
    for name in BASELINE_FIGURES:
        before = getattr(deviation.before, name, None)
        after = getattr(deviation.after, name, None)
        if after is not None and after > (before or 0):
            was = "?" if before is None else f"{before:,}"
            was = f"{was} -> " if deviation.before else ""
            changes.append(f"{name.replace('_', ' ').replace('vm', 'VM')} {was}{after:,}")
    lines = [f"  {cut(deviation.statement)}", f"      {', '.join(changes)}"]
    for site in deviation.after.sites[:SHOWN_SITES] if deviation.after else ():
        lines += [f"      {line}" for line in site_lines(site)]
    return lines
