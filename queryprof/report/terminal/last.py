"""The latest calls of processes, for a terminal: `queryprof last`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.lock_holders import LockHolders, host_by_process
from queryprof.analysis.recent import (
    RecentActivity,
    RecentStatement,
    call_duration_ns,
    clock_time,
)
from queryprof.analysis.report import Report
from queryprof.analysis.threads import process_namer, thread_and_process_name
from queryprof.analysis.units import count, counted, duration, percent
from queryprof.model import LockEvent, RecentCall, Thread
from queryprof.report.places import Places
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)

STATEMENTS, CALLS, WAITS, STALLS = 8, 8, 8, 4
"""Maximum number of rows in each section."""

MAX_CHARACTERS = 200
"""Maximum number of characters shown of a statement."""


def print_last(
    report: Report, activity: RecentActivity, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the busiest statements, the longest calls, lock waits and their holders, event loop
    stalls, and the last calls of killed processes.
    """
    view = _View(report, activity)
    print_parts(console_for(file, width), view.parts())


def _date(at_unix_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_unix_ns / 1e9).astimezone():%Y-%m-%d}"


class _View:
    def __init__(self, report: Report, activity: RecentActivity) -> None:
        self._report = report
        self._activity = activity
        self._places = Places(report.profile)
        self._process_of = process_namer(report.profile)
        self._killed = {process.id for process, _ in activity.last_calls}

    def parts(self) -> Iterator[RenderableType]:
        now, profile = self._activity, self._report.profile
        period = now.period
        yield Text(
            f"queryprof last  {_date(period.start_unix_ns)} {clock_time(period.start_unix_ns)} to"
            f" {clock_time(period.end_unix_ns)}"
        )
        failed = sum(call.has_failed for call in now.calls)
        open_calls = sum(call.duration_ns is None for call in now.calls)
        processes = len({call.thread.process_id for call in now.calls})
        yield Text(
            f"{counted(len(now.calls), 'call')} of {count(processes)}"
            f" process{'' if processes == 1 else 'es'}, {count(failed)} failed,"
            f" {count(open_calls)} not ended"
        )
        for process, first_unix_ns in now.earliest_unix_ns:
            yield Text(
                f"! calls of process {process.pid} before {clock_time(first_unix_ns)} are not kept"
                " (setting recent_calls)",
                "yellow",
            )
        for reason in profile.left_out:
            yield Text(f"! {reason}", "yellow")
        yield from self._statements()
        yield from self._longest_calls()
        yield from self._locks()
        yield from self._stalls()
        yield from self._last_calls()

    def _statements(self) -> Iterator[RenderableType]:
        found = self._activity.statements
        if not found:
            return
        yield heading_line("Statements, by time")
        for one in found[:STATEMENTS]:
            yield self._statement(one)
        if len(found) > STATEMENTS:
            yield Text(f"{len(found) - STATEMENTS} more", "dim")

    def _statement(self, one: RecentStatement) -> RenderableType:
        share = percent(one.total_ns / self._activity.period.ns)
        failed = f", {count(one.failed)} failed" if one.failed else ""
        head = Text.assemble(
            (f"{share:>6}", "bold"),
            f"  {duration(one.total_ns)}  {counted(one.calls, 'call')}, longest"
            f" {duration(one.max_ns)}{failed}  ",
            (self._places.site(one.site), "bold cyan"),
        )
        return _two_lines(head, Text(one.statement), 8)

    def _longest_calls(self) -> Iterator[RenderableType]:
        end_unix_ns = self._activity.period.end_unix_ns
        longest = sorted(
            self._activity.calls,
            key=lambda call: (call.duration_ns is not None, -call_duration_ns(call, end_unix_ns)),
        )[:CALLS]
        if longest:
            yield heading_line("The longest calls, by start")
        for call in sorted(longest, key=lambda call: call.start_unix_ns):
            yield self._call(call)

    def _call(self, call: RecentCall) -> RenderableType:
        took = duration(call_duration_ns(call, self._activity.period.end_unix_ns))
        ended = ""
        if call.duration_ns is None:
            ended = ", not ended"
            if call.thread.process_id in self._killed:  # known up to its last sign of activity
                took = f"at least {took}"
        elif call.has_failed:
            ended = ", failed"
        head = Text.assemble(
            f"  {clock_time(call.start_unix_ns)}  ",
            (took, "bold"),
            (ended, "red"),
            "  ",
            (self._places.frame_text(call.path[0]) if call.path else "(unknown)", "bold cyan"),
        )
        return _two_lines(head, Text(f"{self._thread(call.thread)}: {call.statement}"), 16)

    def _locks(self) -> Iterator[RenderableType]:
        now, period = self._activity, self._activity.period
        databases = dict.fromkeys(event.database for event in (*now.holds, *now.waits))
        holders = LockHolders(
            self._report.profile.lock_events, host_by_process(self._report.profile)
        )
        for database in databases:
            holds = [hold for hold in now.holds if hold.database == database]
            waits = [wait for wait in now.waits if wait.database == database]
            held_ns = sum(period.overlap_ns(one.start_unix_ns, one.duration_ns) for one in holds)
            yield heading_line(f"Write lock of {os.path.basename(database) or database}")
            longest = (
                f", longest {duration(max(one.duration_ns for one in holds))}" if holds else ""
            )
            yield Text(
                f"held {percent(held_ns / period.ns)} of the time:"
                f" {counted(len(holds), 'hold')} of 1 ms or more{longest};"
                f" {counted(len(waits), 'call')} waited"
            )
            if not waits:
                continue
            table = borderless_table("")
            table.add_column("at", no_wrap=True)
            table.add_column("waited", justify="right", no_wrap=True)
            for name in ("call", "held by"):
                table.add_column(name, overflow="fold", ratio=1)
            for wait in sorted(waits, key=lambda one: -one.duration_ns)[:WAITS]:
                table.add_row(
                    clock_time(wait.start_unix_ns),
                    duration(wait.duration_ns),
                    self._event(wait),
                    self._holders(wait, holders),
                )
            yield table

    def _holders(self, wait: LockEvent, holders: LockHolders) -> str:
        found = holders.refusing_holds(wait)
        if not found:
            return "(not seen)"
        (holder, ns), *others = found
        more = f", and {counted(len(others), 'other hold')}" if others else ""
        return f"{self._event(holder)} for {duration(ns)}{more}"

    def _event(self, event: LockEvent) -> str:
        at = self._places.frame_text(event.path[0]) if event.path else "(unknown)"
        return f"{at}, {self._thread(event.thread)}"

    def _thread(self, thread: Thread) -> str:
        return thread_and_process_name(thread.name, self._process_of(thread))

    def _stalls(self) -> Iterator[RenderableType]:
        stalls = sorted(self._activity.stalls, key=lambda one: -one[1].duration_ns)[:STALLS]
        if stalls:
            yield heading_line("The longest stalls of event loops, by start")
        for thread, stall in sorted(stalls, key=lambda one: one[1].started_unix_ns):
            at = stall.path[0] if stall.path else stall.function
            name = f"  {self._thread(thread)}" if thread else ""
            yield Text.assemble(
                f"  {clock_time(stall.started_unix_ns)}  ",
                (duration(stall.duration_ns), "bold"),
                "  ",
                (self._places.frame_text(at), "bold cyan"),
                name,
            )

    def _last_calls(self) -> Iterator[RenderableType]:
        for process, calls in self._activity.last_calls:
            yield heading_line(f"The last calls of process {process.pid}, which was killed")
            for call in calls:
                yield self._call(call)


def _two_lines(head: RenderableType, below: Text, indent: int) -> RenderableType:
    below.truncate(MAX_CHARACTERS, overflow="ellipsis")
    return Group(head, Padding(below, (0, 0, 0, indent)))
