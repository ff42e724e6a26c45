"""The rows of a region as those of a trace.

A column of the trace is the region's column of the same name: the number of another row without `_id`,
a time in ns, or in ticks, which become ns.
"""

from __future__ import annotations

from queryprof.trace.region import FULL, NONE, RECORDS
from queryprof.trace.tables import HANDOFF_PARTS, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from queryprof.trace.pending import AggregateRow
    from queryprof.trace.region import Region
    from queryprof.trace.store import TraceStore

    Histogram = list[tuple[int, int]]

KINDS = ("user", "library", "standard", "standard", "library")
"""The names of the core's code classes in a trace."""

LINE = ("function", "file", "line", "kind", "first_line")
NO_PATH = 0
UNSEEN = ("", "", 0, "user", 0)
"""The function of a loop whose steps cannot be seen."""

RENAMED = {"frame_id": "line"}
"""Columns that have another name in a region."""

LOCK_KINDS = ("write", "read", "wait")

LAG_SOURCES = ("timer", "beat")
DISTRIBUTION = ("number", "total_ns", "max_ns", "spread", "bucket", "count")
"""The region's columns of a distribution, after its name: count, sum, longest, and histogram.
"""


class _Ids(dict[int, int]):
    """Numbers by numbers: a missing one is made."""

    def __init__(self, make: Callable[[int], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> int:
        found = self[number] = self._make(number)
        return found


class RegionAddition:
    """One region on its way into a trace: its numbers become the trace's."""

    def __init__(
        self, store: TraceStore, region: Region, process: int, operations: tuple[str, ...]
    ) -> None:
        self._store = store
        self._region = region
        self._process = process
        self._operations = operations
        self._statement_rows = list(region.rows("statements", ("text", "note")))
        self._line_rows = list(region.rows("lines", LINE))
        self._stack_rows = list(region.rows("stacks", ("outer", "line")))
        self._span_names = [name for (name,) in region.rows("spans", ("name",))]
        self._thread_names = [name for (name,) in region.rows("threads", ("name",))]
        self._frames_of: dict[int, str] = {NO_PATH: ""}
        self._ids = {
            "statement": _Ids(self._statement),
            "frame": _Ids(self._line),
            "stack": _Ids(self._stack),
            "span": _Ids(self._span),
            "thread": _Ids(self._thread),
        }
        """By table: the trace's numbers of rows by those of the region."""
        self._loops: list[int] = []

    def add(self, aggregates: Iterable[AggregateRow]) -> None:
        self._add_aggregates(list(aggregates))
        self._add_all("errors", "error", "count", exception=lambda n: self._text_or(n) or "(other)")
        self._add_exemplars()
        self._add_with_longest("file_work", "file_work", "max_lock")
        self._add_with_longest("locks", "lock_hold", "max", kind=LOCK_KINDS.__getitem__)
        self._add_all("parameters", "parameter_sample", "samples")
        self._add_all("lock_events", "lock_event", "duration_ns", kind=LOCK_KINDS.__getitem__)
        self._add_all("stack_samples", "stack_sample", "executions")
        self._add_plans()
        self._add_timeline()
        self._add_spans()
        self._add_all("repeats", "span_repeat", "spans")
        self._add_all("statuses", "span_status", "count")
        self._add_handoffs()
        self._add_usage()
        self._add_loops()
        causes = list(self._region.rows("causes", ("next", "statement", "path", "calls", "ticks")))
        self._add_steps(causes)
        self._add_stalls(causes)
        self._add_statement_use()

    # -- names -----------------------------------------------------------------------------

    def _statement(self, number: int) -> int:
        text, note = self._row(self._statement_rows, number, (NONE, NONE))
        return self._store.id(
            "statement",
            self._region.text(text) or "(unknown)",
            self._region.text(note) if note != NONE else None,
        )

    def _line(self, number: int) -> int:
        row = self._row(self._line_rows, number, (NONE, NONE, 0, 1, 0))
        function, file = map(self._region.text, row[:2])
        kind = KINDS[min(row[3], len(KINDS) - 1)]
        return self._store.id("frame", function, file, row[2], kind, row[4])

    def _stack(self, number: int) -> int:
        return self._store.id("stack", self._frames(number))

    def _frames(self, number: int) -> str:
        """The ids of a stack's frames, innermost first."""
        missing = []
        while number not in self._frames_of:
            outer, line = self._row(self._stack_rows, number, (NO_PATH, 0))
            missing.append((number, line))
            if outer >= number:  # a row stands after the one around it
                outer = NO_PATH
            number = outer
        frames = self._frames_of[number]
        for inner, line in reversed(missing):
            frame = str(self._ids["frame"][line])
            frames = self._frames_of[inner] = f"{frame},{frames}" if frames else frame
        return frames

    def _span(self, number: int) -> int:
        name = self._row(self._span_names, number, NONE)
        return self._store.id("span", self._region.text(name))

    def _thread(self, number: int) -> int:
        name = self._row(self._thread_names, number, NONE)
        return self._store.id("thread", self._process, self._region.text(name))

    @staticmethod
    def _row(rows: Sequence[Any], number: int, otherwise: Any) -> Any:
        return rows[number] if number < len(rows) else otherwise

    def _operation(self, number: int) -> str:
        return self._operations[number] if number < len(self._operations) else "execute"

    def _text_or(self, number: int) -> str | None:
        return None if number == FULL else self._region.text(number)

    # -- rows ------------------------------------------------------------------------------

    def _rows(
        self, source: str, table: str, *further: str, **given: Callable[[Any], Any]
    ) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
        """The rows of a region's table as those of the trace's, and further columns unchanged.

        Args:
            given: for columns that are converted otherwise, from the region's column of that name.
        """
        there = self._region.tables[source].columns
        names, makers = [], []
        for column in TABLE[table].columns:
            name = RENAMED.get(column.name, column.name.removesuffix("_id"))
            make = given.get(name)
            if make is None and column.reference:
                make = self._ids[column.reference].__getitem__
            elif make is None and name == "operation":
                make = self._operation
            elif make is None and column.sql_type == "TEXT":
                make = self._region.text
            if name not in there:
                name, make = name.replace("_ns", "_ticks"), self._region.ns
            names.append(name)
            makers.append(make)
        width = len(names)
        for row in self._region.rows(source, (*names, *further)):
            made = [
                value if make is None else make(value)
                for value, make in zip(row[:width], makers, strict=True)
            ]
            yield made, row[width:]

    def _add_all(self, source: str, table: str, counts: str, **given: Callable[[Any], Any]) -> None:
        """Adds the rows of a table, those that count something."""
        rows = self._rows(source, table, counts, **given)
        self._store.add(table, [row for row, (count,) in rows if count > 0])

    def _add_histograms(
        self, table: str, rows: Iterable[tuple[tuple[Any, ...], Histogram]]
    ) -> None:
        """Adds histograms, each with the key of its owner."""
        self._store.add(table, [(*owner, *pair) for owner, histogram in rows for pair in histogram])

    def _distribution(self, row: Sequence[Any]) -> tuple[tuple[int, int, int], Histogram]:
        """(count, sum, longest), and the histogram, of the columns of a distribution."""
        *figures, spread, buckets, counts = row
        return tuple(figures), self._region.histogram(spread, buckets, counts)

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

    def _add_with_longest(
        self, source: str, table: str, longest: str, **given: Callable[[Any], Any]
    ) -> None:
        """Adds the rows of a table whose longest time before the mark is in a column of its own."""
        at = TABLE[table].names.index(f"{longest}_ns")
        added = []
        for row, (before,) in self._rows(source, table, f"{longest}_before_ticks", **given):
            row[at] = max(row[at], self._region.ns(before))
            added.append(row)
        self._store.add(table, added)

    def _add_statement_use(self) -> None:
        """Of the statements that other rows refer to: the rest are guesses that nothing ran."""
        ids = self._ids["statement"]
        texts = enumerate(self._region.rows("statements", ("texts",)))
        rows = [(ids[number], count) for number, (count,) in texts if number in ids and count > 1]
        self._store.add("statement_use", rows)

    def _add_exemplars(self) -> None:
        region = self._region
        packed = region.packed("exemplars")
        rows = self._rows(
            "exemplars", "exemplar", "serial",
            stack=self._stack_if_known, sql=self._text_or, parameters=self._text_or,
        )  # fmt: skip
        found = {place: row for place, (row, (serial,)) in enumerate(rows) if serial}
        # Its texts are overwritten, too: an exemplar that was replaced in between is left out.
        for place in region.changing("exemplars", packed, region.packed("exemplars")):
            found.pop(place, None)
        self._store.add("exemplar", found.values())

    def _stack_if_known(self, number: int) -> int | None:
        """The stack's id; None: it was not taken, or was added after the stacks were read."""
        return self._ids["stack"][number] if 0 < number < len(self._stack_rows) else None

    def _add_plans(self) -> None:
        rows = self._rows("plans", "plan", "tree")
        self._store.add("plan", [row for row, (tree,) in rows if tree != NONE])

    def _add_timeline(self) -> None:
        half = self._region["timeline_half"] & 1
        shift = min(self._region.values("timeline_shift", "I")[half], 62)
        first = self._region.values("timeline_first", "q")[half]
        rows = list(self._region.rows("intervals", ("calls", "rows", "self_ns")))
        rows = rows[half * len(rows) // 2 : (half + 1) * len(rows) // 2]
        used = [
            (first + place << shift, *sums) for place, sums in enumerate(rows) if sums[0]
        ]  # fmt: skip
        if used:
            self._store.add_intervals("timeline", 1 << shift, used)

    def _add_spans(self) -> None:
        columns = (
            "count", "errors", "cpu_count", "cpu_ns", "database_ns", *_distribution("durations"),
            *_distribution("queries"),
        )  # fmt: skip
        totals, histograms = [], []
        for place, (count, *sums) in enumerate(self._region.rows("spans", columns)):
            if count:
                number = self._ids["span"][place]
                (_, *durations), histogram = self._distribution(sums[4:10])
                (_, *queries), asked = self._distribution(sums[10:])
                totals.append((number, count, *sums[:4], *durations, *queries))
                histograms += [((number, "duration"), histogram), ((number, "queries"), asked)]
        self._store.add("span_total", totals)
        self._add_histograms("span_histogram", histograms)

    def _add_handoffs(self) -> None:
        parts = [name for part in HANDOFF_PARTS for name in _distribution(part)]
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
        """Adds distributions: of each owner, the columns of its parts."""
        rows, histograms = [], []
        for number, columns in owners:
            for place, part in enumerate(parts):
                at = place * len(DISTRIBUTION)
                figures, pairs = self._distribution(columns[at : at + len(DISTRIBUTION)])
                if figures[0]:
                    rows.append((number, part, *figures))
                    histograms.append(((number, part), pairs))
        self._store.add(table, rows)
        self._add_histograms(histogram, histograms)

    def _add_usage(self) -> None:
        sums = TABLE["thread_usage"].values
        used: list[Sequence[int]] = [
            (self._ids["thread"][number], *row)
            for number, (is_used, *row) in enumerate(
                self._region.rows("threads", ("is_used", *sums))
            )
            if is_used
        ]
        if self._region.state == RECORDS:  # else the process has counted its living threads itself
            used += [
                row
                for row, (living,) in self._rows("tasks", "thread_usage", "kernel_id")
                if living and any(row[1:])
            ]
        self._store.add("thread_usage", used)

    def _add_loops(self) -> None:
        parts = [name for source in LAG_SOURCES for name in _distribution(source)]
        rows = self._rows("loops", "loop", *parts, kind=lambda n: self._region.text(n) or "(other)")
        found = list(rows)
        self._loops = self._store.add("loop", [row for row, _ in found])
        owners = zip(self._loops, [lags for _, lags in found], strict=True)
        self._add_distributions("lag", "lag_histogram", LAG_SOURCES, owners)

    def _add_steps(self, causes: Sequence[tuple[int, ...]]) -> None:
        columns = (
            "loop", "line", *_distribution("durations"), "max_before_ns", "database_ticks",
            "gc_ticks", "first_cause",
        )  # fmt: skip
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
                "stalls", "stall", "first_cause", loop=self._loop_if_known, line=self._function,
                stack=lambda number: self._ids["stack"][number] if number else None,
            )
            if row[0] is not None
        ]  # fmt: skip
        numbers = self._store.add("stall", [row for row, _ in found])
        self._add_causes("stall_cause", numbers, [first for _, first in found], causes)

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
        """Adds the causes of each owner: a list that begins with row `first` - 1."""
        rows = []
        for owner, first in zip(owners, firsts, strict=True):
            at, left = first, len(causes)
            while 0 < at <= len(causes) and left:
                at, statement, path, calls, ticks = causes[at - 1]
                key = (owner, self._ids["statement"][statement], self._ids["stack"][path])
                rows.append((*key, calls, self._region.ns(ticks)))
                left -= 1
        self._store.add(table, rows)


def _distribution(name: str) -> tuple[str, ...]:
    """The columns of a distribution."""
    return tuple(f"{name}_{part}" for part in DISTRIBUTION)
