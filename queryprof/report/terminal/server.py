"""Facts from a PostgreSQL server about the statements, for a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.report import Report
from queryprof.analysis.units import counted, duration
from queryprof.findings.groups import StatementGroup as Statement
from queryprof.findings.groups import statement_groups
from queryprof.model.postgresql import ServerFacts
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, heading_line, print_parts
from queryprof.report.terminal.sql import SqlText

MAX_STATEMENTS = 5
MAX_STEPS = 12
MAX_DEPTH = 10


def print_server(
    report: Report, facts: ServerFacts, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the plans of the most expensive statements, with the server's and recorded times."""
    console, places = console_for(file, width), Places(report.profile)
    groups: dict[str, Statement] = {}
    for group in sorted(statement_groups(report), key=lambda one: -one.self_ns):
        groups.setdefault(group.statement, group)
    known = [group for group in groups.values() if group.statement in facts.plans]
    parts: list[RenderableType] = [heading_line(f"On the server (PostgreSQL {facts.version})")]
    if facts.times_off:
        parts.append(Text(f"! the server's times are unknown: {facts.times_off}", "yellow"))
    for group in known[:MAX_STATEMENTS]:
        parts += _statement_card(group, facts, places, console.width)
    if len(known) > MAX_STATEMENTS:
        parts.append(Text(f"     {len(known) - MAX_STATEMENTS} more: --format json", "dim"))
    if facts.left_out:
        more = counted(facts.left_out, "statement")
        parts.append(Text(f"! no plan was requested for {more} (too many)", "yellow"))
    if facts.refused:
        parts.append(heading_line(f"No plan: {counted(len(facts.refused), 'statement')}"))
        for statement, reason in list(facts.refused.items())[:MAX_STATEMENTS]:
            shown = Group(
                SqlText(statement, console.width - 7), Text(reason, "dim", overflow="fold")
            )
            parts.append(Padding(shown, (0, 0, 0, 5)))
    print_parts(console, parts)


def _statement_card(
    group: Statement, facts: ServerFacts, places: Places, width: int
) -> list[RenderableType]:
    plan, time = facts.plans[group.statement], facts.times.get(group.statement)
    executions = group.totals.statement_executions
    each = duration(group.self_ns / executions) if executions else "(unknown)"
    at_server = (
        f"; mean server time {duration(time.mean_ns)}"
        f" ({counted(time.calls, 'call')} by all programs)"
        if time
        else ""
    )
    unknown = [one.name for one in plan.tables if one.rows is None]
    inside: list[RenderableType] = [
        Text(places.site(group.site), "bold cyan", overflow="fold"),
        SqlText(group.statement, width - 7),
        Text(f"{counted(executions, 'execution')} of {each}{at_server}", overflow="fold"),
    ]
    if unknown:
        names = ", ".join(unknown)
        note = f"! full scans cannot be judged without row counts; run ANALYZE on {names}"
        inside.append(Text(note, "yellow", overflow="fold"))
    scanned = {scan.table for scan in plan.scans}
    for depth, step in plan.steps[:MAX_STEPS]:
        is_scan = any(f" on {name}" in step for name in scanned) and "Cond:" not in step
        style = "yellow" if is_scan else "dim"
        line = Text(step, style, overflow="fold")
        inside.append(Padding(line, (0, 0, 0, 2 * min(depth, MAX_DEPTH))))
    if len(plan.steps) > MAX_STEPS:
        inside.append(Text(f"{len(plan.steps) - MAX_STEPS} steps more: --format json", "dim"))
    return [Text(""), Padding(Group(*inside), (0, 0, 0, 5))]
