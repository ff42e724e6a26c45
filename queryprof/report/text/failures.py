"""Failure messages of tests that do more in the database than allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queryprof.analysis.units import duration, percent
from queryprof.comparing.baseline_deviations import Deviation
from queryprof.comparing.baseline_figures import StatementFigures, TestFigures
from queryprof.findings.finding import CATEGORIES, Finding
from queryprof.model import BASELINE_FIGURES, LockTime, Step
from queryprof.report.inert import escape_control_characters
from queryprof.report.places import file_and_line
from queryprof.report.text.causes import cut_statement, relative_path, site_lines

UNITS = {"vm_steps": "VM steps"}

MAX_STATEMENTS, MAX_QUERIES = 5, 20
MAX_SITES = 3


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """An exceeded limit.

    Attributes:
        statement_figures: the figures of the statements that the limit covers.
        shown: the field of Figures to print (rows, vm_steps or plans), or "".
    """

    reason: str
    statement_figures: TestFigures
    shown: str = ""


# pytest prints the first line next to the test's name at the end of a run.


def regression_message(found: Sequence[Deviation]) -> str:
    """Return a message about the statements that got worse than the baseline, with their changes
    and call sites.

    Possible reasons are printed once for all tests, at the end of the run (causes.py).
    """
    reasons = dict.fromkeys(reason for deviation in found for reason in deviation.reasons)
    lines = [f"does more database work than its baseline: {', '.join(reasons)}"]
    for deviation in found[:MAX_STATEMENTS]:
        lines += _deviation_lines(deviation)
    if len(found) > MAX_STATEMENTS:
        lines.append(f"  ... and {len(found) - MAX_STATEMENTS} more statements")
    return join_parts(lines)


def limit_message(exceeded: Iterable[ExceededLimit]) -> str:
    """Return a message about exceeded limits, with the queries that exceed them."""
    return join_parts(
        *(
            [f"over the limit: {one.reason}:", *_query_lines(one.statement_figures, one.shown)]
            for one in exceeded
        )
    )


def finding_message(found: Sequence[Finding]) -> str:
    """Return a message about the findings of a failed test, with statements, lines and fixes."""
    if not found:
        return ""
    names = ", ".join(f"{one.category} at {_finding_place(one)}" for one in found)
    return join_parts([names], *map(_finding_lines, found))


def _finding_place(found: Finding) -> str:
    frame = found.site.frame
    return file_and_line(os.path.basename(frame.file), frame.line) if frame else "?"


def _finding_lines(found: Finding) -> list[str]:
    frame = found.site.frame
    place = (
        f"{frame.function} {file_and_line(relative_path(frame.file), frame.line)}" if frame else "?"
    )
    code = "\n".join(filter(None, (found.code, found.migration))).splitlines()
    return [
        f"{place}: {CATEGORIES[found.category].title}",
        f"  {cut_statement(found.statement)}",
        *(f"  {line}" for line in found.evidence),
        f"  -> {found.fix}",
        *(f"     {line}" for line in code),
        f"  {found.identity} (to accept this finding, add it to `accepted` of [tool.queryprof])",
    ]


def stall_message(limit: str, stalls: Iterable[Step]) -> str:
    """Return a message about steps that stalled an event loop for too long."""
    lines = [f"  {duration(step.durations.max_ns):>8}  {stall_line(step)}" for step in stalls]
    advice = "Move waits and computations to another thread (aiosqlite, or asyncio.to_thread)."
    head = f"an event loop stalled, {limit}:"
    return join_parts([head], lines, [advice])


def lock_message(limit: str, found: Iterable[LockTime]) -> str:
    """Return a message about statements that waited for a lock, or held it, for too long."""
    lines = []
    for one in found:
        frame = one.path[0] if one.path else None
        at = f" at {os.path.basename(frame.file)}:{frame.line}" if frame else ""
        lines.append(f"  {duration(one.max_ns):>8}  {one.statement}{at}")
    head = f"a lock exceeds its limit: {limit}:"
    return join_parts([head], lines)


def slower_message(ns: int, longest_ns: int, figures: TestFigures) -> str:
    """Return a message about a test whose database time is too long, with its queries."""
    head = (
        f"{duration(ns)} in the database; at most {duration(longest_ns)} in earlier runs on this"
        " machine:"
    )
    return join_parts([head, *_query_lines(figures)])


def stall_line(step: Step) -> str:
    """Describe a step, with the share of its most expensive statement."""
    line = (
        f"{step.function.function}"
        f" {file_and_line(relative_path(step.function.file), step.function.line)}"
    )
    if step.causes and step.durations.total_ns:
        cause = max(step.causes, key=lambda c: c.ns)
        share = percent(cause.ns / step.durations.total_ns)
        line += f", {share} of it in {cut_statement(cause.statement)}"
        if cause.path:
            line += f" at {file_and_line(relative_path(cause.path[0].file), cause.path[0].line)}"
    return line


def join_parts(*parts: Iterable[str]) -> str:
    """Join parts with an empty line between them. Each string of a part is one line."""
    return "\n\n".join(
        "\n".join(escape_control_characters(line) for line in part) for part in parts
    )


def _query_lines(figures: TestFigures, shown: str = "") -> list[str]:
    """Return lines with the queries and the call sites that ran them.

    The queries are sorted by the shown figure, or by executions.
    """

    def most(one: StatementFigures) -> int:
        value = getattr(one, shown, None) if shown else None
        return value if isinstance(value, int) else one.executions

    lines = []
    ranked = sorted(figures.items(), key=lambda item: -most(item[1]))
    for statement, one in ranked[:MAX_QUERIES]:
        lines.append(f"  {one.executions:>5} x {cut_statement(statement)}")
        if shown == "plans":
            lines += [f"          plan  {step}" for plan in one.plans for step in plan]
        elif shown and getattr(one, shown) is not None:
            lines.append(
                f"          {getattr(one, shown):,} {shown.replace('vm_steps', 'VM steps')}"
            )
        for site in one.sites[:MAX_SITES]:
            lines += [f"          {line}" for line in site_lines(site)]
    if len(ranked) > MAX_QUERIES:
        lines.append(f"  ... and {len(ranked) - MAX_QUERIES:,} more statements")
    return lines


def _deviation_lines(deviation: Deviation) -> list[str]:
    changes = [r for r in deviation.reasons if r.startswith("a ")]
    for name in BASELINE_FIGURES:
        before = getattr(deviation.before, name, None)
        after = getattr(deviation.after, name, None)
        if after is not None and after > (before or 0):
            was = "?" if before is None else f"{before:,}"
            was = f"{was} -> " if deviation.before else ""
            changes.append(f"{name.replace('_', ' ').replace('vm', 'VM')} {was}{after:,}")
    lines = [f"  {cut_statement(deviation.statement)}", f"      {', '.join(changes)}"]
    for site in deviation.after.sites[:MAX_SITES] if deviation.after else ():
        lines += [f"      {line}" for line in site_lines(site)]
    return lines
