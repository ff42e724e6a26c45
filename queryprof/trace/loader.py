"""Load an open trace as a Profile. Rows become model objects with fields in the same order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import repeat
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeVar

from queryprof.model import (
    Aggregate,
    Cause,
    CollapsedFigures,
    Distribution,
    ErrorCount,
    Exemplar,
    FileWork,
    Frame,
    Handoff,
    Interval,
    LineTime,
    LockEvent,
    LockHold,
    Loop,
    ParameterSample,
    Plan,
    Process,
    Profile,
    RecentCall,
    Repeat,
    SlowSpan,
    Span,
    SpanRun,
    StackSample,
    Stall,
    StallEvent,
    Step,
    Thread,
    ThreadUsage,
    UsageInterval,
)
from queryprof.trace.attached import attached_names
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.collapsed import ALL_PROCESSES, COLLAPSED, MORE_SUMS, collapsed_settings
from queryprof.trace.shell_loops import without_shells
from queryprof.trace.split_events import unique_exemplars, unique_locks, unique_stalls
from queryprof.trace.tables import HANDOFF_PARTS, TABLE

Row = TypeVar("Row")
Locked = TypeVar("Locked", LockHold, LockEvent)
Histogram = dict[int, int]

NO_HISTOGRAM: Mapping[int, int] = MappingProxyType({})


def load_profile(trace: CheckedTrace, with_calls: bool = False) -> Profile:
    """Return the profile of an open trace, with each object once.

    Args:
        with_calls: whether to load the newest calls of each process.

    Raises:
        TraceError: the trace is damaged.
    """
    loader = _Loader(trace)
    profile = loader.profile()
    return replace(profile, recent_calls=loader.recent_calls()) if with_calls else profile


def _rename_databases(rows: tuple[Locked, ...], names: Mapping[str, str]) -> tuple[Locked, ...]:
    if not names:
        return rows
    return tuple(replace(row, database=names.get(row.database, row.database)) for row in rows)


class _Loader:
    def __init__(self, trace: CheckedTrace) -> None:
        self._trace = trace
        self._known: dict[str, Mapping[Any, Any]] = {}
        self._processes = tuple(
            sorted(map(_process, self._rows("process")), key=lambda p: (p.start_unix_ns, p.id))
        )
        self._keep_known(
            "process", [(ALL_PROCESSES, ALL_PROCESSES), *((p.id, p.id) for p in self._processes)]
        )
        self._notes: dict[str, str] = {}
        self._systems: dict[str, str] = {}
        self._in_windows = {
            one.id for one in self._processes if one.window_start_unix_ns is not None
        }
        self._keep_known("statement", self._statements())
        # Two places of one source line are the same frame.
        self._keep_known("frame", ((number, Frame(*row)) for number, *row in self._rows("frame")))
        self._keep_known("stack", [(None, ()), *self._rows("stack")])
        self._keep_known("span", self._rows("span"))
        self._keep_known(
            "thread", ((number, Thread(*row)) for number, *row in self._rows("thread"))
        )

    def profile(self) -> Profile:
        exemplars = [Exemplar(*row) for _, *row in self._rows("exemplar")]
        holds = self._load_all("lock_hold", LockHold)
        events = [LockEvent(*row) for _, *row in self._rows("lock_event")]
        names = attached_names(
            {*(one.database for one in holds), *(one.database for one in events)}
        )
        return Profile(
            processes=self._processes,
            aggregates=tuple(self._aggregates()),
            errors=self._load_all("error", ErrorCount),
            exemplars=tuple(unique_exemplars(exemplars, self._in_windows)),
            stack_samples=self._load_all("stack_sample", StackSample),
            file_work=self._load_all("file_work", FileWork),
            lock_holds=_rename_databases(holds, names),
            lock_events=_rename_databases(unique_locks(events, self._in_windows), names),
            texts=dict(self._rows("statement_use")),
            parameters=self._load_all("parameter_sample", ParameterSample),
            line_times=self._load_all("line_time", LineTime),
            plans=self._load_all("plan", Plan),
            timeline_width_ns=self._trace.interval_ns("timeline"),
            timeline=self._load_all("timeline", Interval),
            loops=tuple(without_shells(self._loops())),
            spans=tuple(self._spans()),
            slow_spans=tuple(self._slow_spans()),
            handoffs=tuple(self._handoffs()),
            thread_usage=tuple(self._usage()),
            notes=self._notes,
            systems=self._systems,
            sources=self._sources(),
            collapsed=self._collapsed(),
        )

    def _collapsed(self) -> CollapsedFigures | None:
        settings = collapsed_settings(self._trace)
        if not settings:
            return None
        sums = {name.removeprefix("more_"): settings.get(name, 0) for name in MORE_SUMS}
        count, wall, start, end, executing, executing_wall, threads = (
            settings.get(name, 0) for name in COLLAPSED
        )
        return CollapsedFigures(count, wall, start, end, executing, executing_wall, threads, sums)

    def _rows(self, table: str) -> Iterator[Any]:
        return self._trace.resolved_rows(table, self._known)

    def _sorted_rows(self, table: str, *by: str) -> list[Any]:
        """Return a table's rows sorted by columns; "-" before a name sorts in descending order."""
        at = [(TABLE[table].ordered_names.index(name.lstrip("-")), name[0] == "-") for name in by]
        rows = list(self._rows(table))
        for place, is_falling in reversed(at):  # sorts are stable
            rows.sort(key=itemgetter(place), reverse=is_falling)
        return rows

    def _keep_ids(self, table: str, rows: Iterable[Any]) -> None:
        """Make references to these rows resolve to their ids."""
        self._keep_known(table, [(number, number) for number, *_ in rows])

    def _keep_known(self, table: str, rows: Any) -> None:
        self._known[table] = self._trace.ids(table, rows)

    def _load_all(self, table: str, kind: Callable[..., Row]) -> tuple[Row, ...]:
        return tuple([kind(*row) for row in self._rows(table)])

    def _statements(self) -> Iterator[tuple[int, str]]:
        for number, text, note, system in self._rows("statement"):
            if note is not None:
                self._notes[text] = note
            if system is not None:
                self._systems[text] = system
            yield number, text

    def _sources(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for file, digest, _ in self._rows("source"):
            found[file].add(digest)
        return {file: frozenset(digests) for file, digests in found.items()}

    def _histograms(self, table: str) -> Mapping[tuple[object, ...], Histogram]:
        """Return histograms by the key columns before the bucket."""
        names = TABLE[table].names
        found: dict[tuple[object, ...], Histogram] = defaultdict(dict)
        for *owner, bucket, count in self._trace.rows(table, names):
            if count:
                found[tuple(owner)][bucket] = count
        return found

    def _causes(self, table: str) -> Mapping[int, tuple[Cause, ...]]:
        """Return causes by step or stall, longest first."""
        found: dict[int, list[Cause]] = defaultdict(list)
        for owner, *row in self._rows(table):
            found[owner].append(Cause(*row))
        sort = {owner: sorted(causes, key=lambda c: -c.ns) for owner, causes in found.items()}
        return defaultdict(tuple, {owner: tuple(causes) for owner, causes in sort.items()})

    def _aggregates(self) -> Iterator[Aggregate]:
        histograms = self._histograms("histogram")
        for numbers, *columns in self._trace.resolved_columns("aggregate", self._known):
            shapes = map(histograms.get, zip(numbers, strict=True), repeat(NO_HISTOGRAM))
            yield from map(Aggregate._make, zip(*columns, shapes, strict=True))

    def recent_calls(self) -> tuple[RecentCall, ...]:
        aggregates = [(row[0], row[1:6]) for row in self._rows("aggregate")]
        self._keep_known("aggregate", aggregates)
        ended = [
            _object_of(RecentCall, *key, start, duration_ns, bool(failed))
            for key, start, duration_ns, failed in self._rows("recent_call")
        ]
        in_progress = [_object_of(RecentCall, *row, None, False) for row in self._rows("open_call")]
        return tuple(sorted((*ended, *in_progress), key=lambda one: one.start_unix_ns))

    def _loops(self) -> Iterator[Loop]:
        rows = list(self._rows("loop"))
        self._keep_ids("loop", rows)
        lags = self._distributions("lag", "lag_histogram")
        steps, stalls, events = self._steps(), self._stalls(), self._stall_events()
        for number, kind, thread, has_steps, *sums in rows:
            timer, beat = lags.get((number, "timer")), lags.get((number, "beat"))
            in_windows = thread is not None and thread.process_id in self._in_windows
            yield _object_of(
                Loop,
                kind,
                thread,
                bool(has_steps),
                *sums,
                timer or Distribution(),
                beat or Distribution(),
                steps[number],
                stalls[number],
                tuple(unique_stalls(events[number]) if in_windows else events[number]),
            )

    def _steps(self) -> Mapping[int, tuple[Step, ...]]:
        rows = self._sorted_rows("step", "-total_ns")
        self._keep_ids("step", rows)
        histograms, causes = self._histograms("step_histogram"), self._causes("step_cause")
        found: dict[int, list[Step]] = defaultdict(list)
        for number, loop, frame, count, total_ns, max_ns, *times in rows:
            durations = Distribution(count, total_ns, max_ns, histograms.get((number,), {}))
            found[loop].append(_object_of(Step, frame, durations, *times, causes[number]))
        return defaultdict(tuple, {loop: tuple(steps) for loop, steps in found.items()})

    def _stalls(self) -> Mapping[int, tuple[Stall, ...]]:
        rows = self._sorted_rows("stall", "-total_ns")
        self._keep_ids("stall", rows)
        causes = self._causes("stall_cause")
        found: dict[int, list[Stall]] = defaultdict(list)
        for number, loop, *row in rows:
            found[loop].append(_object_of(Stall, *row, causes[number]))
        return defaultdict(tuple, {loop: tuple(stalls) for loop, stalls in found.items()})

    def _stall_events(self) -> Mapping[int, list[StallEvent]]:
        found: dict[int, list[StallEvent]] = defaultdict(list)
        for _, loop, *row in self._sorted_rows("stall_event", "started_unix_ns"):
            found[loop].append(StallEvent(*row))
        return found

    def _distributions(self, table: str, histogram: str) -> dict[tuple[Any, str], Distribution]:
        """Return distributions by the owner's id and the kind."""
        histograms = self._histograms(histogram)
        return {
            (number, part): _object_of(Distribution, *figures, histograms.get((number, part), {}))
            for number, part, *figures in self._rows(table)
        }

    def _spans(self) -> Iterator[Span]:
        histograms = self._histograms("span_histogram")
        statuses: dict[str, dict[int, int]] = defaultdict(dict)
        for name, status, count in self._rows("span_status"):
            statuses[name][status] = count
        repeats: dict[str, list[Repeat]] = defaultdict(list)
        for name, *facts in self._sorted_rows("span_repeat", "-executions"):
            repeats[name].append(Repeat(*facts))
        names = self._known["span"]
        columns = TABLE["span_total"].names
        longest = itemgetter(columns.index("total_ns"))
        for number, count, errors, cpu_count, cpu_ns, database_ns, *rest in sorted(
            self._trace.rows("span_total", columns), key=longest, reverse=True
        ):
            total_ns, max_ns, queries, queries_max = rest
            duration = histograms.get((number, "duration"), {})
            of_queries = histograms.get((number, "queries"), {})
            yield Span(
                names[number],
                count,
                errors,
                cpu_count,
                cpu_ns,
                database_ns,
                Distribution(count, total_ns, max_ns, duration),
                Distribution(count, queries, queries_max, of_queries),
                tuple(repeats[names[number]]),
                statuses[names[number]],
            )

    def _slow_spans(self) -> Iterator[SlowSpan]:
        rows = self._sorted_rows("span_slowest", "span_id", "-duration_ns")
        self._keep_ids("span_slowest", rows)
        runs: dict[int, list[SpanRun]] = defaultdict(list)
        for owner, _, *row in self._rows("span_run"):
            runs[owner].append(SpanRun(*row))
        for number, *facts, failed, status, queue_ns, cpu_ns in rows:
            in_order = sorted(runs[number], key=lambda run: run.start_ns)
            yield _object_of(
                SlowSpan, *facts, bool(failed), status, tuple(in_order), queue_ns, cpu_ns
            )

    def _handoffs(self) -> Iterator[Handoff]:
        rows = list(self._rows("handoff"))
        self._keep_ids("handoff", rows)
        times = self._distributions("handoff_time", "handoff_histogram")
        for number, *row in rows:
            parts = [times.get((number, part), Distribution()) for part in HANDOFF_PARTS]
            yield Handoff(*row, *parts)

    def _usage(self) -> Iterator[ThreadUsage]:
        timelines: dict[Thread, list[UsageInterval]] = defaultdict(list)
        for thread, *interval in self._rows("thread_timeline"):
            timelines[thread].append(UsageInterval(*interval))
        width_ns = self._trace.interval_ns("thread_timeline")
        found = [
            _object_of(ThreadUsage, thread, *sums, width_ns, tuple(timelines[thread]))
            for thread, *sums in self._rows("thread_usage")
        ]
        yield from sorted(found, key=lambda usage: -usage.user_ns - usage.system_ns)


def _object_of(kind: Callable[..., Row], *values: Any) -> Row:
    return kind(*values)


def _process(row: tuple[Any, ...]) -> Process:
    values = dict(zip(("id", *TABLE["process"].names), row, strict=True))
    for name in ("argv", "unmeasured"):
        if values[name] is not None:
            values[name] = tuple(json.loads(values[name]))
    for name in ("clean_end", "rows_estimated"):
        values[name] = bool(values[name])
    return Process(**values)
