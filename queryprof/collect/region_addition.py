"""Add a region's data to a trace."""

from __future__ import annotations

from queryprof.collect.recent_calls import open_calls, recent_call_rows
from queryprof.collect.region_rows import RegionRows
from queryprof.region.names import LAG_SOURCES, LOCK_KINDS
from queryprof.region.region import FULL, NONE, RECORDS
from queryprof.trace.tables import HANDOFF_PARTS, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from queryprof.collect.recent_calls import CallChoice
    from queryprof.region.pending import AggregateRow, Key
    from queryprof.region.region import Region
    from queryprof.trace.store import TraceStore

    Histogram = list[tuple[int, int]]

UNSEEN = ("", "", 0, "user", 0)
"""The function of a loop whose steps are unknown."""


DISTRIBUTION = ("number", "total_ns", "max_ns", "spread", "bucket", "count")
"""The region's columns of a distribution, after its name: count, sum, longest, and histogram."""


NAMES = ("statement", "stack", "span", "thread")
"""The tables that the numbers in a call's key refer to."""


class RegionAddition(RegionRows):
    """Adds one region to a trace."""

    def __init__(
        self,
        store: TraceStore,
        region: Region,
        process: int,
        operations: tuple[str, ...],
        cells: Mapping[str, str],
    ) -> None:
        super().__init__(store, region, process, operations, cells)
        self._loops: list[int] = []
        self._aggregate_ids: dict[Key, int] = {}

    def add(self, aggregates: Iterable[AggregateRow], end_unix_ns: int) -> None:
        """Add all tables.

        Args:
            aggregates: the region's aggregates, including calls that were not summed.
            end_unix_ns: latest time at which these calls ended.
        """
        aggregates = list(aggregates)
        self._add_aggregates(aggregates)
        self._add_all("errors", "error", "count", exception=lambda n: self._text_or(n) or "(other)")
        self._add_exemplars()
        self._add_with_longest("file_work", "file_work", "max_lock")
        self._add_with_longest("locks", "lock_hold", "max", kind=LOCK_KINDS.__getitem__)
        self._add_all("parameters", "parameter_sample", "samples")
        self._add_all("line_times", "line_time", "passes")
        self._add_all("lock_events", "lock_event", "duration_ns", kind=LOCK_KINDS.__getitem__)
        self._add_all("stack_samples", "stack_sample", "executions")
        self._add_plans()
        self._add_timeline(aggregates, end_unix_ns)
        self._add_spans()
        self._add_all("repeats", "span_repeat", "spans")
        self._add_all("statuses", "span_status", "count")
        self._add_slowest_spans()
        self._add_handoffs()
        self._add_usage()
        self._add_loops()
        causes = list(self._region.rows("causes", ("next", "statement", "path", "calls", "ticks")))
        self._add_steps(causes)
        self._add_stalls(causes)
        self._add_statement_use()

    def _add_all(self, source: str, table: str, counts: str, **given: Callable[[Any], Any]) -> None:
        """Add the rows of a table whose count is not zero."""
        rows = self._rows(source, table, counts, **given)
        self._store.add(table, [row for row, (count,) in rows if count > 0])

    def _add_histograms(
        self, table: str, rows: Iterable[tuple[tuple[Any, ...], Histogram]]
    ) -> None:
        """Add histograms, each with the key of its owner."""
        self._store.add(table, [(*owner, *pair) for owner, histogram in rows for pair in histogram])

    def _distribution(self, row: Sequence[Any]) -> tuple[tuple[int, int, int], Histogram]:
        """Return (count, sum, longest) and the histogram from the columns of a distribution."""
        *figures, spread, buckets, counts = row
        return tuple(figures), self._region.histogram(spread, buckets, counts)

    def _distribution_of(
        self, row: Mapping[str, Any], name: str
    ) -> tuple[tuple[int, int, int], Histogram]:
        return self._distribution([row[column] for column in _distribution_columns(name)])

    def _add_aggregates(self, aggregates: Sequence[AggregateRow]) -> None:
        statements, stacks = self._ids["statement"], self._ids["stack"]
        spans, threads = self._ids["span"], self._ids["thread"]
        rows = []
        for one in aggregates:
            statement, path, span, thread, operation = one.key
            key = (statements[statement], stacks[path], spans[span], threads[thread])
            rows.append((*key, self._operation(operation), *one.values()))
        numbers = self._store.add("aggregate", rows)
        owners = [(number,) for number in numbers]
        histograms = [one.histogram for one in aggregates]
        self._add_histograms("histogram", zip(owners, histograms, strict=True))
        self._aggregate_ids = dict(zip((one.key for one in aggregates), numbers, strict=True))

    def add_recent_calls(self, choice: CallChoice, is_clean: bool) -> None:
        """Add the newest calls, and the calls in progress. The aggregates must have been added."""
        rows = recent_call_rows(self._region, self._aggregate_ids, choice, is_clean)
        self._store.add("recent_call", rows)
        self._store.add("open_call", [self._open_call(*one) for one in open_calls(self._region)])

    def _open_call(self, key: Key, start_unix_ns: int) -> tuple[object, ...]:
        *numbers, operation = key
        ids = [self._ids[name][number] for name, number in zip(NAMES, numbers, strict=True)]
        return (*ids, self._operation(operation), start_unix_ns)

    def _add_with_longest(
        self, source: str, table: str, longest: str, **given: Callable[[Any], Any]
    ) -> None:
        """Add the rows of a table that stores its longest time in two columns; use the larger."""
        at = TABLE[table].names.index(f"{longest}_ns")
        added = []
        for row, (before,) in self._rows(source, table, f"{longest}_before_ticks", **given):
            row[at] = max(row[at], self._region.ns(before))
            added.append(row)
        self._store.add(table, added)

    def _add_statement_use(self) -> None:
        """Add the number of texts of each statement that rows refer to. Other statements are first
        guesses that were replaced.
        """
        ids = self._ids["statement"]
        texts = enumerate(self._region.rows("statements", ("texts",)))
        rows = [(ids[number], count) for number, (count,) in texts if number in ids and count > 1]
        self._store.add("statement_use", rows)

    def _add_exemplars(self) -> None:
        region = self._region
        packed = region.packed_rows("exemplars")
        rows = self._rows(
            "exemplars",
            "exemplar",
            "serial",
            stack=self._stack_if_known,
            sql=self._text_or,
            parameters=self._text_or,
        )
        found = {place: row for place, (row, (serial,)) in enumerate(rows) if serial}
        # The texts of a replaced exemplar are overwritten, so it is skipped.
        for place in region.changed_rows("exemplars", packed, region.packed_rows("exemplars")):
            found.pop(place, None)
        self._store.add("exemplar", found.values())

    def _stack_if_known(self, number: int) -> int | None:
        """Return the stack's id; None if no stack was taken, or if it was added after the stacks
        were read.
        """
        return self._ids["stack"][number] if 0 < number < len(self._stack_rows) else None

    def _add_plans(self) -> None:
        rows = self._rows("plans", "plan", "tree")
        self._store.add("plan", [row for row, (tree,) in rows if tree != NONE])

    def _add_timeline(self, aggregates: Sequence[AggregateRow], end_unix_ns: int) -> None:
        """Add the timeline. Calls that are missing in it are the newest: add them at its end."""
        half = self._region["timeline_half"] & 1
        shift = min(self._region.header_values("timeline_shift", "I")[half], 62)
        first = self._region.header_values("timeline_first", "q")[half]
        rows = list(self._region.rows("intervals", ("calls", "rows", "self_ns")))
        rows = rows[half * len(rows) // 2 : (half + 1) * len(rows) // 2]
        used: dict[int, Sequence[int]] = {
            first + place: sums for place, sums in enumerate(rows) if any(sums)
        }
        last = max(end_unix_ns >> shift, first, *used)
        for at, whole in enumerate(
            map(sum, zip(*(one.timeline_figures() for one in aggregates), strict=True))
        ):
            _adjust_to_total(used, last, at, whole)
        intervals = [(place << shift, *sums) for place, sums in sorted(used.items()) if any(sums)]
        if intervals:
            self._store.add_intervals("timeline", 1 << shift, intervals)

    def _add_spans(self) -> None:
        sums = ("count", "errors", "cpu_count", "cpu_ns", "database_ns")
        columns = (*sums, *_distribution_columns("durations"), *_distribution_columns("queries"))
        totals, histograms = [], []
        for place, values in enumerate(self._region.rows("spans", columns)):
            row = dict(zip(columns, values, strict=True))
            if row["count"]:
                number = self._ids["span"][place]
                (_, *durations), histogram = self._distribution_of(row, "durations")
                (_, *queries), of_queries = self._distribution_of(row, "queries")
                totals.append((number, *[row[name] for name in sums], *durations, *queries))
                histograms += [((number, "duration"), histogram), ((number, "queries"), of_queries)]
        self._store.add("span_total", totals)
        self._add_histograms("span_histogram", histograms)

    def _add_slowest_spans(self) -> None:
        region = self._region
        packed = region.packed_rows("slow_spans")
        facts = list(region.rows("slow_spans", ("first_run", "runs", "duration_ns")))
        known = len(list(region.rows("span_runs", ("executions",))))
        found = {
            place: (first, count)
            for place, (first, count, duration_ns) in enumerate(facts)
            if duration_ns > 0 and first + count <= known
        }
        rows = self._chosen_rows(
            "slow_spans",
            "span_slowest",
            found,
            given={
                "status": lambda number: number or None,
                "cpu_ns": lambda number: number if number >= 0 else None,
            },
        )
        spans = dict(zip(found, [row for row, _ in rows], strict=True))
        places = [first + at for first, count in found.values() for at in range(count)]
        runs = self._chosen_rows(
            "span_runs", "span_run", places, left_out=("span_slowest_id", "position")
        )
        run_at = dict(zip(places, [row for row, _ in runs], strict=True))
        # The runs of a replaced span are overwritten, so it is skipped.
        for place in region.changed_rows("slow_spans", packed, region.packed_rows("slow_spans")):
            spans.pop(place, None)
        numbers = self._store.add("span_slowest", spans.values())
        self._store.add(
            "span_run",
            [
                (number, at, *run_at[found[place][0] + at])
                for number, place in zip(numbers, spans, strict=True)
                for at in range(found[place][1])
            ],
        )

    def _add_handoffs(self) -> None:
        parts = [name for part in HANDOFF_PARTS for name in _distribution_columns(part)]
        found = list(self._rows("handoffs", "handoff", *parts))
        numbers = self._store.add("handoff", [row for row, _ in found])
        owners = zip(numbers, [distributions for _, distributions in found], strict=True)
        self._add_distributions("handoff_time", "handoff_histogram", HANDOFF_PARTS, owners)

    def _add_distributions(
        self,
        table: str,
        histogram: str,
        parts: Sequence[str],
        owners: Iterable[tuple[int, Sequence[Any]]],
    ) -> None:
        """Add the distributions of each owner's parts."""
        rows, histograms = [], []
        for number, columns in owners:
            for place, part in enumerate(parts):
                at = place * len(DISTRIBUTION)
                (count, *sums), pairs = self._distribution(columns[at : at + len(DISTRIBUTION)])
                if count:
                    rows.append((number, part, count, *sums))
                    histograms.append(((number, part), pairs))
        self._store.add(table, rows)
        self._add_histograms(histogram, histograms)

    def _add_usage(self) -> None:
        columns = ("is_used", *TABLE["thread_usage"].value_names)
        used: list[Sequence[int]] = [
            (self._ids["thread"][number], *row)
            for number, (is_used, *row) in enumerate(self._region.rows("threads", columns))
            if is_used
        ]
        # a process that ended its recording itself has already counted these threads
        if self._region.state == RECORDS:
            used += [
                (thread, *sums)
                for (thread, *sums), (living,) in self._rows("tasks", "thread_usage", "kernel_id")
                if living and any(sums)
            ]
        self._store.add("thread_usage", used)

    def _add_loops(self) -> None:
        parts = [name for source in LAG_SOURCES for name in _distribution_columns(source)]
        rows = self._rows("loops", "loop", *parts, kind=lambda n: self._region.text(n) or "(other)")
        found = list(rows)
        self._loops = self._store.add("loop", [row for row, _ in found])
        owners = zip(self._loops, [lags for _, lags in found], strict=True)
        self._add_distributions("lag", "lag_histogram", LAG_SOURCES, owners)

    def _add_steps(self, causes: Sequence[tuple[int, ...]]) -> None:
        columns = (
            "loop",
            "line",
            *_distribution_columns("durations"),
            "max_before_ns",
            "database_ticks",
            "gc_ticks",
            "first_cause",
        )
        rows, histograms, firsts = [], [], []
        ns = self._region.ns
        for loop, line, *durations, before_ns, database, gc, first in self._region.rows(
            "steps", columns
        ):
            (count, total_ns, max_ns), pairs = self._distribution(durations)
            if count and loop < len(self._loops):
                key = (self._loops[loop], self._ids["frame"][line])
                figures = (count, total_ns, max(max_ns, before_ns), ns(database), ns(gc))
                rows.append((*key, *figures))
                histograms.append(pairs)
                firsts.append(first)
        numbers = self._store.add("step", rows)
        owners = [(number,) for number in numbers]
        self._add_histograms("step_histogram", zip(owners, histograms, strict=True))
        self._add_causes("step_cause", numbers, firsts, causes)

    def _add_stalls(self, causes: Sequence[tuple[int, ...]]) -> None:
        found = [
            (row, first)
            for row, (first,) in self._rows(
                "stalls",
                "stall",
                "first_cause",
                loop=self._loop_if_known,
                line=self._function,
                stack=lambda number: self._ids["stack"][number] if number else None,
            )
            if row[0] is not None
        ]
        numbers = self._store.add("stall", [row for row, _ in found])
        self._add_causes("stall_cause", numbers, [first for _, first in found], causes)
        events = self._rows(
            "stall_events",
            "stall_event",
            loop=self._loop_if_known,
            line=self._function,
            stack=self._stack_if_known,
        )
        self._store.add("stall_event", [row for row, _ in events if row[0] is not None])

    def _loop_if_known(self, number: int) -> int | None:
        return self._loops[number] if number < len(self._loops) else None

    def _function(self, line: int) -> int:
        return self._store.id("frame", *UNSEEN) if line == FULL else self._ids["frame"][line]

    def _add_causes(
        self,
        table: str,
        owners: Sequence[int],
        firsts: Sequence[int],
        causes: Sequence[tuple[int, ...]],
    ) -> None:
        """Add the causes of each owner: a linked list that begins with row `first` - 1."""
        rows = []
        for owner, first in zip(owners, firsts, strict=True):
            at, left = first, len(causes)
            while 0 < at <= len(causes) and left:
                at, statement, path, calls, ticks = causes[at - 1]
                key = (owner, self._ids["statement"][statement], self._ids["stack"][path])
                rows.append((*key, calls, self._region.ns(ticks)))
                left -= 1
        self._store.add(table, rows)


def _adjust_to_total(intervals: dict[int, Sequence[int]], last: int, at: int, whole: int) -> None:
    """Correct a figure of intervals so that it adds up to the total.

    The last interval gets the difference. If this would make it negative, because a running process
    continued in between, earlier intervals take the rest.
    """
    rest = whole - sum(sums[at] for sums in intervals.values())
    for place in [last, *sorted(intervals, reverse=True)] if rest else []:
        sums = list(intervals.get(place, (0, 0, 0)))
        before, sums[at] = sums[at], max(0, sums[at] + rest)
        rest += before - sums[at]
        intervals[place] = sums


def _distribution_columns(name: str) -> tuple[str, ...]:
    """Return the columns of a distribution."""
    return tuple(f"{name}_{part}" for part in DISTRIBUTION)
