"""The overview: how long the program ran, its time in the database, and which data is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryprof.analysis.totals import self_ns_of
from queryprof.analysis.units import counted
from queryprof.model import OTHER_LINE, Process, Profile
from queryprof.operations import NO_CALLS, POOL_WAIT, STATEMENT_OPERATIONS, UNCOUNTED


def completeness_sentence(processes: int) -> str:
    """Return the sentence for a complete recording. It states the number of processes, so that a
    reader notices missing ones: queryprof cannot record child processes that have a different
    environment or no site-packages.
    """
    recorded = "1 process" if processes == 1 else f"{processes:,} processes"
    return f"Complete: {recorded}, every call recorded."


UNKNOWN_STATEMENT = "(unknown)"

COARSE_TICK_NS = 10
"""Clock ticks of this length or more are too long to time the fetch of a row, about 100 ns."""

SHOWN_SPANS = 3
"""The maximum number of span names in a caution."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures above the ranking. Times are in ns.

    Attributes:
        rows: None if the program fetched some rows in a form that queryprof cannot count.
        run_ns: from the first process's start to the last process's end. process_ns: the sum of all
            processes' run times.
        database_ns: time in driver calls. pool_ns: the part spent waiting for a pooled connection.
        database_share: the share of process_ns in the database; can exceed 1 with threads.
        profiler_ns: queryprof's own time in calls (an estimate: it measures 1 of 61 calls), in
            flushes and for new statements. Time for spans, event loops and files is not included.
        cautions: sentences about missing or inexact data.
    """

    command: tuple[str, ...]
    processes: int
    run_ns: int
    process_ns: int
    database_ns: int
    pool_ns: int
    database_share: float
    calls: int
    executions: int
    statements: int
    errors: int
    rows: int | None
    profiler_ns: int
    cautions: tuple[str, ...]


def overview_of(profile: Profile) -> Overview:
    """Return the overview of a profile."""
    aggregates, processes = profile.aggregates, profile.processes
    database_ns = self_ns_of(aggregates)
    calls = sum([a.count for a in aggregates])
    executed = [a.count for a in aggregates if a.operation in STATEMENT_OPERATIONS]
    start_unix_ns, end_unix_ns = profile.span_unix_ns
    process_ns = profile.process_ns
    is_uncounted = any(a.operation == UNCOUNTED for a in aggregates)
    statements = {a.statement for a in aggregates if a.count and not a.statement.startswith("(")}
    return Overview(
        command=processes[0].argv if processes else (),
        processes=profile.process_count,
        run_ns=end_unix_ns - start_unix_ns,
        process_ns=process_ns,
        database_ns=database_ns,
        pool_ns=self_ns_of([a for a in aggregates if a.operation == POOL_WAIT]),
        database_share=database_ns / process_ns if process_ns else 0.0,
        calls=calls,
        executions=sum(executed),
        statements=len(statements),
        errors=sum([a.errors for a in aggregates]),
        rows=None if is_uncounted else sum([a.rows for a in aggregates]),
        profiler_ns=profile.total("flush_ns") or 0,
        cautions=tuple([] if calls else [NO_CALLS]) + tuple(_cautions(profile)),
    )


def _name_processes(processes: Sequence[Process], one: str, several: str) -> str:
    """Return the first five process ids, the number of other processes, and the verb (`one` or
    `several`).
    """
    if len(processes) == 1:
        return f"process {processes[0].pid} {one}"
    more = f" and {len(processes) - 5} more" if len(processes) > 5 else ""
    return f"processes {', '.join(str(process.pid) for process in processes[:5])}{more} {several}"


def _dropped_for_limits(profile: Profile) -> list[str]:
    """Return cautions about data that was dropped or merged because of queryprof's limits."""
    cautions = []
    folded = profile.total("folded_statements") or 0
    if folded:
        cautions.append(
            f"{folded:,} executions are grouped as (other): too many different statements"
        )
    folded_calls = profile.total("folded_calls") or 0
    if folded_calls:
        cautions.append(f"{folded_calls:,} calls are grouped as (other): too many call paths")
    lost = profile.total("lost_counters") or 0
    if lost:
        cautions.append(f"SQLite's counters of {lost:,} executions are unknown")
    unasked = profile.total("unasked_plans") or 0
    if unasked:
        cautions.append(
            f"{unasked:,} query plans were not read: reading plans had reached its limit (1/64 of"
            " the run), or the plan table was full"
        )
    removed = profile.total("lost_windows") or 0
    if removed:
        named = "window was" if removed == 1 else "windows were"
        cautions.append(f"{removed:,} older {named} removed, to keep the latest (QUERYPROF_KEEP)")
    return cautions


def unended_processes(profile: Profile) -> tuple[list[Process], list[Process]]:
    """Return the processes that still run, and the processes that were killed or run in another
    container.
    """
    left: tuple[list[Process], list[Process]] = [], []
    for one in profile.processes:
        if not one.clean_end:
            left[(one.pid, one.start_unix_ns, one.host) not in profile.running].append(one)
    return left


def _cautions(profile: Profile) -> list[str]:
    cautions = []
    processes = profile.processes
    running, killed = unended_processes(profile)
    if running:
        cautions.append(
            f"{_name_processes(running, 'is', 'are')} still running: these figures are up to now,"
            " without calls in progress"
        )
    if killed:
        cautions.append(
            f"{_name_processes(killed, 'has', 'have')} no recorded end (a signal, os._exit(),"
            " Pool.terminate(), another container). "
            + ("Run" if profile.left_out else "Only calls in progress are missing; run")
            + " times and thread usage are lower bounds. `queryprof last` shows the last calls"
        )
    cautions += [f"skipped, and missing in all figures: {one}" for one in profile.left_out]
    if profile.unlisted:
        number = profile.unlisted.count
        cautions.append(
            f"{number:,} more {'process' if number == 1 else 'processes'} ended normally; totals"
            f" include {'it, lists omit it' if number == 1 else 'them, lists omit them'}"
        )
    cautions += _dropped_for_limits(profile)
    cautions += _unknown_call_cautions(profile)
    cautions += _endless_span_cautions(profile)
    cautions += [
        f"SQLite's counters are unknown: {reason}"
        for reason in sorted({p.counters_off for p in processes if p.counters_off})
    ]
    cautions += [
        f"SQLite's file work and locks are unknown: {reason}"
        for reason in sorted({p.files_off for p in processes if p.files_off and not p.counters_off})
    ]
    cautions += [
        f"the file work of {counted(unseen, 'connection')} is unknown: the program opened them"
        " with its own VFS"
        for unseen in [profile.total("unseen_files") or 0]
        if unseen
    ]
    unmeasured = sorted({name for p in processes for name in p.unmeasured or ()})
    if unmeasured:
        cautions.append(
            f"imported but not measured: {', '.join(unmeasured)} (see docs/drivers.md, also for"
            " other DB-API drivers)"
        )
    if any(p.rows_estimated for p in processes):
        cautions.append("times of operation next are estimates: this machine's clock is slow")
    coarsest_ns = max((p.clock_tick_ns or 0 for p in processes), default=0)
    if coarsest_ns >= COARSE_TICK_NS:
        cautions.append(coarse_clock_caution(coarsest_ns))
    return cautions


def coarse_clock_caution(tick_ns: float) -> str:
    return (
        f"this machine's clock ticks every {tick_ns:.0f} ns: times of many rows are right on"
        " average, but the shortest and longest row are rounded"
    )


def _unknown_call_cautions(profile: Profile) -> list[str]:
    """Return sentences about calls with an unknown statement or line."""
    # A failed call may have no statement, because its argument had a wrong type or the connection
    # was closed.
    statements = sum(
        a.count - a.errors for a in profile.aggregates if a.statement == UNKNOWN_STATEMENT
    )
    lines = sum(a.count for a in profile.aggregates if not a.path)
    no_room = sum(a.count for a in profile.aggregates if any(f == OTHER_LINE for f in a.path))
    cautions = []
    if statements:
        cautions.append(
            f"the statement of {statements:,} calls is unknown: it began before the recording, or"
            " too many cursors were open (docs/measuring.md)"
        )
    if lines:
        cautions.append(f"{counted(lines, 'call')} {'has' if lines == 1 else 'have'} no known line")
    if no_room:
        cautions.append(f"{no_room:,} calls are grouped as (other): too many different lines")
    return cautions


def _endless_span_cautions(profile: Profile) -> list[str]:
    """Return a sentence about spans that never ended. Only ended spans are counted."""
    ended = {span.name for span in profile.spans}
    names = sorted({a.span for a in profile.aggregates if a.span and a.count} - ended)
    if not names:
        return []
    more = f" and {len(names) - SHOWN_SPANS} more" if len(names) > SHOWN_SPANS else ""
    caution = (
        f"spans named {', '.join(names[:SHOWN_SPANS])}{more} never ended, so their times and their"
        " queries in loops are unknown (does the server close the WSGI application's response?)"
    )
    return [caution]
