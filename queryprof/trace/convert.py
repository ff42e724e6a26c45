"""From the memory of a recording to a trace: each region is added to what the trace has.

What a process had noted and not yet added up when it was killed is added here, as the core would
have done it (queryprof.trace.pending).
"""

from __future__ import annotations

import json
import sqlite3
import struct

from queryprof.errors import TraceError
from queryprof.trace.identity import facts_of, identity_of
from queryprof.trace.pending import aggregate_rows
from queryprof.trace.region import ENDED, FULL, NONE, PART, RECORDS
from queryprof.trace.store import PROCESS_COLUMNS, storable
from queryprof.trace.work_store import HANDOFF_PARTS, HANDOFF_SUMS, USAGE_SUMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from queryprof.trace.identity import Identity
    from queryprof.trace.pending import AggregateRow
    from queryprof.trace.region import Region
    from queryprof.trace.store import TraceStore

KINDS = ("user", "library", "standard", "standard", "library")
"""What a code class of the core is called in a trace."""

NO_PATH, OTHER_PATH = 0, 1
UNSEEN = ("", "", 0, "user")
"""What ran in a loop whose steps cannot be seen."""


class Conversion:
    """Adds regions to a trace: each in a transaction of its own, where none has begun. After an error it
    is not to be used again: what it knows may be more than what the trace has.

    Args:
        store: of the trace.
    """

    def __init__(self, store: TraceStore) -> None:
        self.store = store
        self.statements = _Names(store, "statement", ("text",), ("note",))
        self.frames = _Names(store, "frame", ("function", "file", "line"), ("kind",))
        self.stacks = _Names(store, "stack", ("frames",))
        self.spans = _Names(store, "span", ("name",))
        self._processes: dict[Identity, int] = {}

    def add(self, region: Region, is_clean: bool | None = None) -> int:
        """Adds what a region holds, and returns the id of its process.

        Args:
            is_clean: whether the process ended by itself, where that is known better than the region
                has it.

        Raises:
            TraceError: it holds what no recording leaves.
            sqlite3.OperationalError: the trace cannot be written.
        """
        with self.store.transaction():
            return self._add(region, is_clean)

    def _add(self, region: Region, is_clean: bool | None) -> int:
        facts = facts_of(region)
        try:
            identity = identity_of(region)
            known = self._processes.get(identity)
            is_new = known is None
            values = _process_values(region, facts, is_clean)
            if known is None:
                known = self._processes[identity] = self.store.add_process(values)
            else:
                self._add_to_process(known, values, is_part=region.state == PART)
            aggregates = aggregate_rows(region)
            region.read_head()  # the names after the sums: of a living process, they may be new
            addition = _RegionAddition(self, region, known, tuple(facts["operations"]))
            addition.add(aggregates, is_new)
            for names in (self.statements, self.frames, self.stacks, self.spans):
                names.write()
        except sqlite3.OperationalError:
            raise
        except (
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            struct.error,
            sqlite3.Error,
        ) as e:
            raise TraceError(f"{region.path or 'the recording'}: is damaged: {e}") from e
        return known

    def _add_to_process(self, number: int, values: Mapping[str, object], is_part: bool) -> None:
        sums = ("folded_statements", "folded_calls")
        updates = {name: values[name] for name in sums}
        later = {} if is_part else {n: v for n, v in values.items() if n not in sums}
        self.store.connection.execute(
            "UPDATE process SET "
            + ", ".join(
                [f"{n} = {n} + :{n}" for n in updates] + [f"{n} = :{n}" for n in later]
            )
            + f" WHERE id = {number}",
            {**updates, **later},
        )  # fmt: skip


def _process_values(
    region: Region, facts: Mapping[str, Any], is_clean: bool | None
) -> Mapping[str, object]:
    clean = region.state == ENDED if is_clean is None else is_clean
    known = {name: facts.get(name) for name in PROCESS_COLUMNS}
    return {
        **known,
        "argv": json.dumps(facts["arguments"]),
        "unmeasured": None if facts.get("unmeasured") is None else json.dumps(facts["unmeasured"]),
        "end_unix_ns": facts.get("end_unix_ns") or _last_sign_unix_ns(region),
        "clean_end": int(clean),
        "flushes": region["turns"],
        "flush_ns": region["own_ns"],
        "folded_statements": region["folded_statements"],
        "folded_calls": region["folded_calls"],
        "read_bytes": _own_left_out(facts.get("read_bytes"), region["own_read_bytes"]),
        "written_bytes": _own_left_out(facts.get("written_bytes"), region["own_written_bytes"]),
        "lost_counters": region["lost_counters"],
        "unasked_plans": region["unasked_plans"],
    }


def _own_left_out(bytes_of_all: object, own: int) -> int | None:
    return max(0, bytes_of_all - own) if isinstance(bytes_of_all, int) else None


def _last_sign_unix_ns(region: Region) -> int:
    """When a process that did not say when it ended was last seen to do something."""
    ends = [
        region.unix_ns(started + ticks)
        for started, ticks in region.rows("calls", ("started_ticks", "ticks"))
        if started
    ]
    ends += [
        region.unix_ns(last) for (last,) in region.rows("calls", ("pending_last_ticks",)) if last
    ]
    return max([int(region["turn_unix_ns"]), *ends])


class _Names:
    """The rows of a table that others refer to, each with a key of its own."""

    def __init__(
        self, store: TraceStore, table: str, key: Sequence[str], further: Sequence[str] = ()
    ) -> None:
        self._connection = store.connection
        columns = ("id", *key, *further)
        self._known = {
            tuple(row): number
            for number, *row in self._connection.execute(
                f"SELECT id, {', '.join(key)} FROM {table}"
            )
        }
        self._next = max(self._known.values(), default=0) + 1
        self._new: list[tuple[object, ...]] = []
        self._insert = (
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        )

    def number(self, key: tuple[object, ...], *further: object) -> int:
        """The id of the row with this key."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._next
            self._next += 1
            self._new.append((known, *map(storable, key), *map(storable, further)))
        return known

    def write(self) -> None:
        """Inserts the rows that are new."""
        self._connection.executemany(self._insert, self._new)
        self._new = []


class _RegionAddition:
    """One region on its way into a trace: its numbers become the trace's."""

    def __init__(
        self, conversion: Conversion, region: Region, process: int, operations: tuple[str, ...]
    ) -> None:
        self._to = conversion
        self._store = conversion.store
        self._region = region
        self._process = process
        self._operations = operations
        self._statement_rows = list(region.rows("statements", ("text", "note")))
        self._line_rows = list(region.rows("lines", ("function", "file", "line", "kind")))
        self._stack_rows = list(region.rows("stacks", ("outer", "line")))
        self._span_names = [name for (name,) in region.rows("spans", ("name",))]
        self._thread_names = [name for (name,) in region.rows("threads", ("name",))]
        self._statements: dict[int, int] = {}
        self._lines: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._frames_of: dict[int, str] = {NO_PATH: ""}
        self._spans: dict[int, int] = {}
        self._threads: dict[int, int] = {}

    def add(self, aggregates: Iterable[AggregateRow], is_new: bool) -> None:
        """Adds all; `is_new`: of a process of which nothing was added before."""
        rows = [(self._key(*row.key), row.values(), row.histogram) for row in aggregates]
        self._store.add_aggregates(rows, is_new)
        self._add_errors()
        self._add_samples()
        self._add_plans()
        self._add_timeline()
        self._add_spans()
        self._add_handoffs()
        self._add_usage()
        self._add_loops()

    # -- names -----------------------------------------------------------------------------

    def _statement(self, number: int) -> int:
        known = self._statements.get(number)
        if known is None:
            text, note = self._row(self._statement_rows, number, (NONE, NONE))
            known = self._statements[number] = self._to.statements.number(
                (self._region.text(text) or "(unknown)",),
                self._region.text(note) if note != NONE else None,
            )
        return known

    def _line(self, number: int) -> int:
        known = self._lines.get(number)
        if known is None:
            function, file, line, kind = self._row(self._line_rows, number, (NONE, NONE, 0, 1))
            known = self._lines[number] = self._frame(
                self._region.text(function),
                self._region.text(file),
                line,
                KINDS[min(kind, len(KINDS) - 1)],
            )
        return known

    def _frame(self, function: str, file: str, line: int, kind: str) -> int:
        return self._to.frames.number((function, file, line), kind)

    def _stack(self, number: int) -> int:
        known = self._stacks.get(number)
        if known is None:
            known = self._stacks[number] = self._to.stacks.number((self._frames(number),))
        return known

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
            frame = str(self._line(line))
            frames = self._frames_of[inner] = f"{frame},{frames}" if frames else frame
        return frames

    def _span(self, number: int) -> int:
        known = self._spans.get(number)
        if known is None:
            name = self._row(self._span_names, number, NONE)
            known = self._spans[number] = self._to.spans.number((self._region.text(name),))
        return known

    def _thread(self, number: int) -> int:
        known = self._threads.get(number)
        if known is None:
            name = self._row(self._thread_names, number, NONE)
            known = self._threads[number] = self._store.thread(
                self._process, self._region.text(name)
            )
        return known

    @staticmethod
    def _row(rows: Sequence[Any], number: int, otherwise: Any) -> Any:
        return rows[number] if number < len(rows) else otherwise

    def _operation(self, number: int) -> str:
        return self._operations[number] if number < len(self._operations) else "execute"

    def _key(
        self, statement: int, path: int, span: int, thread: int, operation: int
    ) -> tuple[int, int, int, int, str]:
        return (
            self._statement(statement), self._stack(path), self._span(span), self._thread(thread),
            self._operation(operation),
        )  # fmt: skip

    # -- rows ------------------------------------------------------------------------------

    def _add_errors(self) -> None:
        columns = ("statement", "path", "operation", "exception", "count")
        for statement, path, operation, exception, count in self._region.rows("errors", columns):
            if count:
                key = (self._statement(statement), self._stack(path), self._operation(operation))
                self._store.add_error((*key, self._text_or(exception) or "(other)"), count)

    def _add_samples(self) -> None:
        columns = (
            "statement", "path", "span", "thread", "operation", "serial", "started_unix_ns",
            "duration_ns", "rows", "stack", "sql", "parameters",
        )  # fmt: skip
        region = self._region
        packed = region.packed("exemplars")
        exemplars = {}
        for place, row in enumerate(
            region.tables["exemplars"].decoder(columns).iter_unpack(packed)
        ):
            serial, *figures, stack, sql, parameters = row[5:]
            if serial:
                is_known = 0 < stack < len(self._stack_rows)  # else it came after they were read
                stack_id = self._stack(stack) if is_known else None
                texts = (self._text_or(sql), self._text_or(parameters))
                exemplars[place] = (*self._key(*row[:5]), *figures, stack_id, *texts)
        # Its texts are written over, too: one that another took the place of meanwhile is left out.
        for place in region.changing("exemplars", packed, region.packed("exemplars")):
            exemplars.pop(place, None)
        self._store.add_exemplars(list(exemplars.values()))
        for statement, stack, executions, ns in self._region.rows(
            "stack_samples", ("statement", "stack", "executions", "ns")
        ):
            if executions > 0:
                self._store.add_stack_sample(
                    self._statement(statement), self._stack(stack), executions, ns
                )

    def _text_or(self, number: int) -> str | None:
        return None if number == FULL else self._region.text(number)

    def _add_plans(self) -> None:
        for statement, database, tree in self._region.rows(
            "plans", ("statement", "database", "tree")
        ):
            if tree != NONE:
                self._store.add_plan(
                    self._statement(statement), self._region.text(database), self._region.text(tree)
                )

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
            self._store.add_timeline(1 << shift, used)

    def _add_spans(self) -> None:
        columns = (
            "count", "errors", "cpu_count", "cpu_ns", "database_ns", *_distribution("durations"),
            *_distribution("queries"),
        )  # fmt: skip
        for number, row in enumerate(self._region.rows("spans", columns)):
            count, errors, cpu_count, cpu_ns, database_ns, *rest = row
            durations, queries = self._distribution(rest[:6]), self._distribution(rest[6:])
            if count:
                self._store.work.add_span(
                    self._span(number),
                    (count, errors, cpu_count, cpu_ns, database_ns, durations[1], queries[1]),
                    (durations[2], queries[2]),
                    {"duration": durations[3], "queries": queries[3]},
                )
        columns = ("span", "statement", "path", "spans", "executions", "most")
        for span, statement, path, *sums in self._region.rows("repeats", columns):
            key = (self._span(span), self._statement(statement), self._stack(path))
            self._store.work.add_repeat(key, *sums)
        for span, status, count in self._region.rows("statuses", ("span", "status", "count")):
            self._store.work.add_status(self._span(span), status, count)

    def _distribution(
        self, row: Sequence[Any]
    ) -> tuple[int, int, int, list[tuple[int, int]]]:  # fmt: skip
        """(count, total_ns, max_ns, buckets) of the columns of a distribution."""
        count, total_ns, max_ns, spread, buckets, counts = row
        return count, total_ns, max_ns, self._region.histogram(spread, buckets, counts)

    def _add_handoffs(self) -> None:
        columns = ["kind", "path", "span", *HANDOFF_SUMS]
        for part in HANDOFF_PARTS:
            columns += _distribution(part)
        for kind, path, span, *row in self._region.rows("handoffs", columns):
            sums, rest = row[: len(HANDOFF_SUMS)], row[len(HANDOFF_SUMS) :]
            times = {
                part: self._distribution(rest[6 * place : 6 * place + 6])
                for place, part in enumerate(HANDOFF_PARTS)
            }
            key = (self._region.text(kind), self._stack(path), self._span(span))
            self._store.work.add_handoff(key, sums, times)

    def _add_usage(self) -> None:
        for number, (is_used, *sums) in enumerate(
            self._region.rows("threads", ("is_used", *USAGE_SUMS))
        ):
            if is_used:
                self._store.work.add_usage(self._thread(number), sums)
        if self._region.state == RECORDS:  # else the process has counted its living threads itself
            for thread, living, *sums in self._region.rows(
                "tasks", ("thread", "kernel_id", *USAGE_SUMS)
            ):
                if living and any(sums):
                    self._store.work.add_usage(self._thread(thread), sums)

    def _add_loops(self) -> None:
        columns = (
            "kind", "thread", "has_steps", "runs", "run_ticks", "busy_ticks", "steps", "waiting",
            "waiting_max", *_distribution("timer"), *_distribution("beat"),
        )  # fmt: skip
        loops = []
        ns = self._region.ns
        for row in self._region.rows("loops", columns):
            kind, thread, has_steps, runs, run, busy, steps, waiting, waiting_max = row[:9]
            name = self._region.text(kind) or "(other)"
            sums = (runs, ns(run), ns(busy), steps, waiting)
            loop = self._store.loops.add_loop(
                name, self._thread(thread), bool(has_steps), sums, waiting_max
            )
            for source, lag in (("timer", row[9:15]), ("beat", row[15:21])):
                count, total_ns, max_ns, buckets = self._distribution(lag)
                if count:
                    self._store.loops.add_lag(loop, source, (count, total_ns), max_ns, buckets)
            loops.append(loop)
        causes = list(
            self._region.rows("causes", ("next", "statement", "path", "calls", "ticks"))
        )  # fmt: skip
        self._add_steps(loops, causes)
        self._add_stalls(loops, causes)

    def _add_steps(self, loops: Sequence[int], causes: Sequence[tuple[int, ...]]) -> None:
        columns = (
            "loop", "line", "gc_ticks", "max_before_ns", *_distribution("durations"),
            "database_ticks", "first_cause",
        )  # fmt: skip
        for loop, line, gc, before_ns, *durations, database, first in self._region.rows(
            "steps", columns
        ):
            count, total_ns, max_ns, buckets = self._distribution(durations)
            if count and loop < len(loops):
                sums = (count, total_ns, self._region.ns(database), self._region.ns(gc))
                self._store.loops.add_step(
                    loops[loop], self._line(line), sums, max(max_ns, before_ns), buckets,
                    self._causes(first, causes),
                )  # fmt: skip

    def _add_stalls(self, loops: Sequence[int], causes: Sequence[tuple[int, ...]]) -> None:
        columns = (
            "loop", "line", "path", "stack", "count", "total_ns", "max_ns", "gc_ns", "gil_ns",
            "cpu_ns", "cpu_of_ns", "delayed", "delay_ns", "samples", "database_ticks",
            "first_cause",
        )  # fmt: skip
        for row in self._region.rows("stalls", columns):
            loop, line, path, stack, count, total_ns, max_ns, *sums, database, first = row
            if loop < len(loops):
                frame = self._frame(*UNSEEN) if line == FULL else self._line(line)
                self._store.loops.add_stall(
                    (loops[loop], frame, self._stack(path)),
                    self._stack(stack) if stack else None,
                    (count, total_ns, self._region.ns(database), *sums),
                    max_ns,
                    self._causes(first, causes),
                )

    def _causes(
        self, first: int, causes: Sequence[tuple[int, ...]]
    ) -> Iterable[tuple[int, int, int, int]]:
        """The causes of a list that begins with row `first` - 1."""
        found = []
        left = len(causes)
        while 0 < first <= len(causes) and left:
            first, statement, path, calls, ticks = causes[first - 1]
            found.append(
                (self._statement(statement), self._stack(path), calls, self._region.ns(ticks))
            )
            left -= 1
        return found


def _distribution(name: str) -> tuple[str, ...]:
    """The columns of a distribution."""
    return tuple(
        f"{name}_{part}" for part in ("number", "total_ns", "max_ns", "spread", "bucket", "count")
    )
