"""Findings about how much of the time a statement takes, whatever it does."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.findings.finding import Finding, Severity
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.indexes import works_hard
from queryprof.analysis.findings.program import Program
from queryprof.analysis.findings.recorded import HEAVY_SHARE
from queryprof.analysis.units import average, counted, duration, percent
from queryprof.analysis.units import rows as rows_of

OFF_THE_LOOP = (
    "Call the database off the loop: aiosqlite, or await asyncio.to_thread(function, ...); and make"
    " the statement faster."
)
LONG_ON_LOOP_NS = 1_000_000
"""Far more than the way to a thread and back takes."""

ON_LOOP_SHARE = 0.10
"""Of the run, in which a statement keeps an event loop from everything else."""

MANY = 1000
CHEAP_NS = 300_000
CHEAP_STEPS = 1_000
"""Of SQLite's program, an execution. A call of sqlite3 for a file takes as long as 900 steps (5.4
us; a step 6 ns), in memory as 200. What takes more is the query's own work, which fetching many
items at once does not save: measured with sums over 0 to 100 rows of a covering index."""
MANY_SHARE = 0.10


def outlier(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        if group.outlier_ns and (group.reads or group.writes):
            yield program.finding(
                "outlier",
                group,
                group.outlier_ns,
                (
                    (
                        f"1 of {counted(totals.executions, 'execution')} took"
                        f" {duration(totals.max_ns)}; half of them took {duration(totals.p50_ns)}"
                        " or less"
                    ),
                ),
                "Look at that one execution (queryprof report --show slowest): its parameters, a"
                " lock, a cache that was cold.",
                doubt="The next run may not have it.",
                most=Severity.MEDIUM,
            )


def many_cheap(program: Program) -> Iterator[Finding | None]:
    """By the driver's time: what an object mapper takes for each request is no loop's."""
    for group in program.groups:
        totals = group.totals
        share = group.steady_ns / program.run_ns if program.run_ns else 0.0
        is_cheap = group.steady_ns < CHEAP_NS * totals.executions and (
            totals.vm_steps is None or totals.vm_steps <= CHEAP_STEPS
        )
        is_many = group.reads and totals.executions >= MANY and not program.is_inside(group)
        if is_many and is_cheap and share >= MANY_SHARE:
            yield program.finding(
                "many_cheap",
                group,
                group.steady_ns * (1 - 1 / totals.executions),
                (
                    (
                        f"{counted(totals.executions, 'execution')} of"
                        f" {duration(group.steady_ns / totals.executions)} take"
                        f" {percent(min(1.0, share))} of the {program.whole}: none is slow, all"
                        " together are"
                    ),
                ),
                "Ask for many items at once (WHERE id IN (...), a JOIN), or keep in memory what is"
                " read again and again.",
                program.loop_of(group),
                doubt="Whether all of them are needed is for the program to know.",
                most=Severity.MEDIUM,
            )


def _is_on_loop(program: Program, group: Group) -> bool:
    return any(
        (cause.statement, cause.site.frame) == (group.statement, group.site.frame)
        for loop in program.report.loops
        for function in loop.functions
        for cause in function.causes
    )


def heavy_query(program: Program) -> Iterator[Finding | None]:
    """What takes much of the time, where no other rule knows why: last of all."""
    for group in program.groups:
        totals, rows = group.totals, group.totals.rows_each or 0.0
        share = group.steady_ns / program.run_ns if program.run_ns else 0.0
        each_ns = group.steady_ns / max(totals.executions, 1)
        is_on_loop = each_ns >= LONG_ON_LOOP_NS and _is_on_loop(program, group)
        if not group.reads or share < (ON_LOOP_SHARE if is_on_loop else HEAVY_SHARE):
            continue
        work = (
            "" if totals.vm_steps is None else f", each takes {average(totals.vm_steps)} VM steps"
        )
        if is_on_loop:
            yield program.finding(
                "blocked_loop",
                group,
                group.steady_ns,
                (
                    (
                        f"{counted(totals.executions, 'execution')} of {duration(each_ns)} each on"
                        " the event loop, which does nothing else meanwhile:"
                        f" {percent(min(1.0, share))} of the {program.whole}"
                    ),
                ),
                OFF_THE_LOOP,
                program.loop_of(group),
                doubt="Whether other callbacks had to wait for it is not known.",
                most=Severity.MEDIUM,
            )
            continue
        yield program.finding(
            "heavy_query",
            group,
            group.steady_ns,
            (
                (
                    f"{counted(totals.executions, 'execution')} of"
                    f" {duration(group.steady_ns / max(totals.executions, 1))}{work} to return"
                    f" {rows_of(rows)}: {percent(min(1.0, share))} of the {program.whole}"
                ),
            ),
            (
                "Keep its result where it is needed again, or keep what it computes in a table that"
                " the writes change, too (a trigger)."
                if works_hard(totals.vm_steps, rows)
                else (
                    "Read fewer rows or columns, or let the database compute what is made of"
                    " them (sum(), GROUP BY)."
                )
            ),
            program.loop_of(group),
            doubt="No rule fits it: it may need all that it reads.",
            most=Severity.LOW,
        )
