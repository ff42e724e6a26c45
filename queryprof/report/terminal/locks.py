"""Locks on database files, for a terminal: which calls waited, and what held the locks."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import RenderableType
from rich.padding import Padding

from queryprof.analysis.call_sites import call_site
from queryprof.analysis.lock_holders import (
    LockHolders,
    host_by_process,
    own_code_share,
    unseen_ns,
)
from queryprof.analysis.report import Report
from queryprof.analysis.threads import process_namer
from queryprof.analysis.units import count, counted, duration, format_bytes, percent
from queryprof.model import CallPath, LockEvent, LockHold
from queryprof.report.places import Places
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)

NOTABLE_SHARE = 0.01
NOTABLE_OWN = 0.05
MOSTLY, NOTABLE_NS = 0.9, 1_000_000
LONG_HOLD_NS = 1_000_000_000
SHOWN = 10
NOTHING_HELD = "No lock on a database file was held for long, and no call waited for one."
GOES_ON = "These times exclude current holds and waits: see queryprof locks FILE."


def long_hold_sentence(report: Report) -> str:
    """Return a sentence about the longest write lock; "" if it was held for less than a second.
    The lock matters even if no recorded call waited: unrecorded processes may have waited for it.
    """
    writes = [hold for hold in report.lock_holds if hold.kind == "write"]
    longest = max(writes, key=lambda hold: hold.max_ns, default=None)
    if longest is None or longest.max_ns < LONG_HOLD_NS:
        return ""
    at = _site_text(longest.path, report, Places(report.profile))
    return f"Longest write lock: {duration(longest.max_ns)}, {at} (report --show locks)"


def lock_summary(report: Report) -> list[RenderableType]:
    """Return one line if waiting for locks took 1% or more of the database time, or if a write lock
    was held for a second or longer; otherwise [].
    """
    work = report.profile.file_work
    waited_ns = sum(one.lock_ns for one in work)
    database_ns = report.overview.database_ns
    if not database_ns or waited_ns < NOTABLE_SHARE * database_ns:
        sentence = long_hold_sentence(report)
        return [heading_line(sentence)] if sentence else []
    calls = sum(one.lock_waits for one in work)
    return [
        heading_line(
            f"Waiting for locks: {duration(waited_ns)} ({percent(waited_ns / database_ns)} of the"
            f" database time) in {counted(calls, 'call')}, longest"
            f" {duration(max(one.max_lock_ns for one in work))} (--show locks)"
        )
    ]


def print_locks(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the locks and their holders, and the longest waits."""
    console = console_for(file, width)
    places = Places(report.profile)
    holds = sorted(report.lock_holds, key=lambda hold: -hold.total_ns)
    waits = _longest_waits(report, places)
    parts: list[RenderableType] = []
    if report.profile.running:
        parts.append(Text(GOES_ON))
    if not holds and not waits:
        parts.append(Text(NOTHING_HELD))
    for database in dict.fromkeys(hold.database for hold in holds):
        here = [hold for hold in holds if hold.database == database]
        parts.append(heading_line(f"Locks on {os.path.basename(database) or database}"))
        for hold in here[: report.top or SHOWN]:
            parts += _hold_lines(hold, report, places)
        if len(here) > (report.top or SHOWN):
            parts.append(Text(f"{len(here) - (report.top or SHOWN)} more: --top", style="dim"))
    print_parts(console, [*parts, *waits])


def _hold_lines(hold: LockHold, report: Report, places: Places) -> list[RenderableType]:
    each = f", longest {duration(hold.max_ns)}" if hold.count > 1 else ""
    times = f"{hold.kind}  {count(hold.count)} x {duration(hold.total_ns / max(hold.count, 1))}"
    site = Text.assemble(
        (_site_text(hold.path, report, places), "bold cyan"), f"  {_thread_name(hold, report)}"
    )
    lines = [Text(hold.statement), *(Text(fact, "dim") for fact in _hold_facts(hold, places))]
    return [
        Text.assemble((f"{duration(hold.total_ns):>9}", "bold"), f"  {times}{each}"),
        *(Padding(line, (0, 0, 0, 11)) for line in (site, *lines)),
    ]


def _hold_facts(hold: LockHold, places: Places) -> list[str]:
    """Return the notable facts about a hold: its end, the program's own code, rows, log size."""
    facts = []
    if hold.end_statement != hold.statement or hold.end_path[:1] != hold.path[:1]:
        ended = f" {places.where(hold.end_path[0])}" if hold.end_path else ""
        facts.append(f"until {hold.end_statement}{ended}")
    own = own_code_share(hold)
    if own is not None and own >= NOTABLE_OWN:
        facts.append(f"{percent(own)} of the time in the program's own code")
    if hold.changed_rows:
        facts.append(f"{counted(hold.changed_rows, 'row')} changed by its thread")
    if hold.log_bytes:
        facts.append(f"the write-ahead log reached {format_bytes(hold.log_bytes)}")
    return facts


def _longest_waits(report: Report, places: Places) -> list[RenderableType]:
    """Return the longest waits, each with the holder of the lock."""
    events = report.profile.lock_events
    waits = [event for event in events if event.kind == "wait"]
    holders = LockHolders(events, host_by_process(report.profile))
    if not waits:
        return []
    table = borderless_table("\nThe longest waits")
    table.add_column("waited", justify="right", no_wrap=True)
    for name in ("at", "held by"):
        table.add_column(name, overflow="fold", ratio=1)
    for wait in sorted(waits, key=lambda event: -event.duration_ns)[: report.top or SHOWN]:
        table.add_row(
            duration(wait.duration_ns),
            _place_and_thread(wait, report, places),
            _holder_in_words(wait, holders, report, places),
        )
    left = len(waits) - (report.top or SHOWN)
    return [table, Text(f"{left} more: --top", style="dim")] if left > 0 else [table]


def _holder_in_words(wait: LockEvent, holders: LockHolders, report: Report, places: Places) -> str:
    """Describe the call that held the lock longest during a wait, and the call that it waited for.

    Adds the time if the holder did not hold the lock for the whole wait.
    """
    found = holders.refusing_holds(wait)
    if not found:
        return "(not seen)"
    (holder, ns), *others = found
    by = _place_and_thread(holder, report, places)
    rest = []
    behind = holders.blockers_of(wait)[0][0]
    if all(behind is not hold for hold, _ in found):
        by = f"{by}, which waited for {_place_and_thread(behind, report, places)}"
    if others and ns < MOSTLY * wait.duration_ns:
        others_ns = sum(of_other for _, of_other in others)
        rest.append(f"{counted(len(others), 'other hold')} for {duration(others_ns)}")
    not_seen_ns = unseen_ns(wait, [hold for hold, _ in found])
    if not_seen_ns > NOTABLE_NS:
        rest.append(f"holder unknown for {duration(not_seen_ns)}")
    return ", ".join([f"{by} for {duration(ns)}", *rest]) if rest else by


def _place_and_thread(event: LockEvent, report: Report, places: Places) -> str:
    """Return the call site of a lock event and its thread."""
    return f"{_site_text(event.path, report, places)} ({_thread_name(event, report)})"


def _thread_name(held: LockEvent | LockHold, report: Report) -> str:
    """Return a thread's name and, if there are several processes, its process."""
    process = process_namer(report.profile)(held.thread)
    return f"{held.thread.name} of {process}" if process else held.thread.name


def _site_text(path: CallPath, report: Report, places: Places) -> str:
    return places.site(call_site(path, report.helpers))
