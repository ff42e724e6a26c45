"""The live writer: a sink of the recorder that adds what changed to a trace file, once a second.

The file is made at the first flush that has something in it, or at the end; a process that never
asks a database anything leaves none unless it shall.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from queryprof.core import _core
from queryprof.core.process_io import PROCESS, THREAD, read_io
from queryprof.core.recorder import Work, complain, muted
from queryprof.trace.command_line import without_values
from queryprof.trace.usage_writer import UsageWriter
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.store import TraceStore

KINDS = ("user", "library", "standard", "standard", "library")
"""What a code class of the core is called in a trace."""

UNSEEN: _core.FrameRow = ("", "", 0, 0)
"""What ran in a loop whose steps cannot be seen."""


class TraceWriter:
    """Writes one process's trace.

    Args:
        path: where the file shall be, or ":memory:".
        call_cost_ns: the calibrated cost of one probed call.
        counters_off: why SQLite's counters are unknown, or None.
        even_if_empty: whether there shall be a file when nothing was recorded.
        keeps_values: whether values on the command line are kept, as parameters may be.
    """

    def __init__(
        self,
        path: str,
        call_cost_ns: float,
        counters_off: str | None,
        even_if_empty: bool = True,
        keeps_values: bool = False,
    ) -> None:
        self._path = path
        self._even_if_empty = even_if_empty
        self._keeps_values = keeps_values
        self._pid = os.getpid()
        self._start_unix_ns = time_ns()
        self._call_cost_ns = call_cost_ns
        self._counters_off = counters_off
        self._failed = False
        self._flushes = 0
        self._flush_ns = 0
        self._io_at_start = read_io(PROCESS)
        self._io_at_flush = self._io_at_start
        self._own_io = [0, 0]  # of flushes, in the threads that did them
        self._thread_io = read_io(THREAD)
        self._losses_before = _core.losses()
        self._losses = (0, 0, 0, 0)
        self._operations = _core.operations()
        self._store: TraceStore | None = None
        self._process = 0
        # From the recorder's numbers to the file's.
        self._statements: dict[int, int] = {}
        self._paths: dict[int, int] = {}
        self._spans: dict[int, int] = {}
        self._threads: dict[int, int] = {}
        self._plans: set[_core.PlanRow] = set()
        self._usage = UsageWriter()

    def fail(self, error: Exception) -> None:
        """Gives the trace up and says so, once; the file stays as the last flush left it."""
        if not self._failed:
            self._failed = True
            reason = str(error)
            named = reason if self._path in reason else f"{self._path}: {reason}"
            complain(f"recording ended, the program goes on: {named}")

    def begin(self) -> None:
        self._note_io()
        self._usage.begin_flush()
        self._opened().begin()

    def add_aggregates(self, rows: list[_core.AggregateRow]) -> None:
        store = self._opened()
        for row in rows:
            statement, path, span, thread, operation, count, errors, calls_rows = row[:8]
            total_ns, self_ns, min_ns, max_ns, execution_max_ns, sum_sq = row[8:14]
            steps, scans, sorts, indexes, reprepares, fetches, counted, samples = row[14:22]
            buckets = row[22]
            store.add_aggregate(
                self._key(statement, path, span, thread, operation),
                (
                    count, errors, calls_rows, total_ns, self_ns, sum_sq, counted, steps, scans,
                    sorts, indexes, reprepares, fetches, samples, min_ns, max_ns,
                    execution_max_ns,
                ),
                pairs(buckets),
            )  # fmt: skip

    def add_errors(self, rows: list[_core.ErrorRow]) -> None:
        for statement, path, _, _, operation, exception, count in rows:
            key = (self.statement(statement), self.path(path), self._operations[operation])
            self._opened().add_error((*key, exception), count)

    def add_exemplars(self, rows: list[_core.ExemplarRow]) -> None:
        for row in rows:
            statement, path, span, thread, operation, started, duration, served, stack = row[:9]
            stack_id = self.path(stack) if stack else None
            key = self._key(statement, path, span, thread, operation)
            self._opened().add_exemplar((*key, started, duration, served, stack_id, *row[9:]))
        self._opened().keep_slowest()

    def add_stack_samples(self, rows: list[_core.StackSampleRow]) -> None:
        for statement, stack, executions, ns in rows:
            self._opened().add_stack_sample(
                self.statement(statement), self.path(stack), executions, ns
            )

    def add_plans(self, rows: list[_core.PlanRow]) -> None:
        for row in rows:
            if row not in self._plans:
                self._plans.add(row)
                statement, database, tree = row
                self._opened().add_plan(self.statement(statement), database, tree)

    def add_work(self, work: Work) -> None:
        from queryprof.trace.work_writer import add_work

        add_work(self._opened(), self, work)
        self._usage.meter.add_ended(work.ended_threads)

    def add_timeline(self, width_ns: int, rows: list[_core.TimelineRow]) -> None:
        self._opened().add_timeline(width_ns, rows)

    def add_loops(
        self,
        loops: list[_core.LoopRow],
        steps: list[_core.StepRow],
        stalls: list[_core.StallRow],
    ) -> None:
        store = self._opened().loops
        numbers = {row[0]: self._add_loop(row) for row in loops}
        for loop, function, (count, total_ns, max_ns, buckets), *times, causes in steps:
            frame = self._opened().frame(*_frames((function,)))
            sums = (count, total_ns, *times)
            store.add_step(numbers[loop], frame, sums, max_ns, pairs(buckets), self._causes(causes))
        for loop, what, path, stack, count, total_ns, max_ns, *rest, causes in stalls:
            frame = self._opened().frame(*_frames((what or UNSEEN,)))
            stack_id = self.path(stack) if stack else None
            store.add_stall(
                (numbers[loop], frame, self.path(path)), stack_id, (count, total_ns, *rest),
                max_ns, self._causes(causes),
            )  # fmt: skip

    def commit(self, flush_ns: int, losses: tuple[int, int, int, int]) -> None:
        self._flushes += 1
        self._flush_ns += flush_ns
        before = self._losses_before
        self._losses = (
            losses[0] - before[0], losses[1] - before[1], losses[2] - before[2],
            losses[3] - before[3],
        )  # fmt: skip
        self._opened().update_process(self._process, self._progress())
        self._usage.add(self._opened(), self._process)
        self._opened().commit()
        self._leave_out_own_io()

    def close(self, clean_end: bool) -> None:
        """Says when and how the process ended, and closes the file; never raises."""
        if self._failed or not (self._store or self._even_if_empty):
            return
        with muted():
            try:
                store = self._opened()
                self._note_io()
                self._usage.begin_flush(at_end=True)
                store.begin()
                store.update_process(
                    self._process, {**self._progress(), "clean_end": int(clean_end)}
                )
                self._usage.add(store, self._process)
                store.commit()
                if self._path != ":memory:":
                    store.close()
            except Exception as error:
                self.fail(error)

    def _note_io(self) -> None:
        """A flush begins: what it reads and writes will not be the program's."""
        self._io_at_flush = read_io(PROCESS)
        self._thread_io = read_io(THREAD)

    def _leave_out_own_io(self) -> None:
        now = read_io(THREAD)
        if now and self._thread_io:
            for kind in (0, 1):
                self._own_io[kind] += now[kind] - self._thread_io[kind]
        self._usage.end_flush()

    def _io(self) -> tuple[int, int] | tuple[None, None]:
        """Bytes that the program has read and written until the present flush began."""
        until, start = self._io_at_flush, self._io_at_start
        if until is None or start is None:
            return None, None
        return until[0] - start[0] - self._own_io[0], until[1] - start[1] - self._own_io[1]

    @property
    def has_file(self) -> bool:
        """Whether anything has been written."""
        return self._store is not None

    def store(self) -> TraceStore:
        """The open trace, for a reader in the same process."""
        return self._opened()

    def _opened(self) -> TraceStore:
        if self._store is None:
            from queryprof.trace.store import TraceStore

            with muted():
                try:
                    self._store = TraceStore(self._path)
                except FileExistsError:  # another program has made it since this one began
                    from queryprof.trace.place import retry

                    self._path = retry(self._path, self._start_unix_ns)
                    self._store = TraceStore(self._path)
                self._store.begin()
                self._process = self._store.add_process(self._facts())
                self._store.commit()
        return self._store

    def _progress(self) -> dict[str, object]:
        read, written = self._io()
        return {
            "end_unix_ns": time_ns(),
            "flushes": self._flushes,
            "flush_ns": self._flush_ns,
            "folded_statements": self._losses[0],
            "folded_calls": self._losses[1],
            "lost_counters": self._losses[2],
            "unasked_plans": self._losses[3],
            "read_bytes": read,
            "written_bytes": written,
        }

    def _facts(self) -> dict[str, object]:
        import json
        import socket
        import sqlite3

        clock, _ = _core.clock_source()
        arguments: list[str] = getattr(sys, "orig_argv", [])
        return {
            **self._progress(),
            "pid": self._pid,
            "parent_pid": os.getppid(),
            "host": socket.gethostname(),
            "argv": json.dumps(arguments if self._keeps_values else without_values(arguments)),
            "directory": os.getcwd(),
            "python_version": sys.version.split()[0],
            "sqlite_version": sqlite3.sqlite_version,
            "queryprof_version": __version__,
            "start_unix_ns": self._start_unix_ns,
            "clean_end": 0,
            "clock": clock,
            "rows_estimated": int(clock == "monotonic clock"),
            "counters_off": self._counters_off,
            "call_cost_ns": self._call_cost_ns,
        }

    def _key(
        self, statement: int, path: int, span: int, thread: int, operation: int
    ) -> tuple[int, int, int, int, str]:
        return (
            self.statement(statement),
            self.path(path),
            self.span(span),
            self._thread(thread),
            self._operations[operation],
        )

    def _add_loop(self, row: _core.LoopRow) -> int:
        _, kind, thread, has_steps, *sums, waiting_max, timers, beats = row
        loop = self._opened().loops.add_loop(
            kind, self._thread(thread), has_steps, sums, waiting_max
        )
        for source, (count, total_ns, max_ns, buckets) in (("timer", timers), ("beat", beats)):
            if count:
                self._opened().loops.add_lag(
                    loop, source, (count, total_ns), max_ns, pairs(buckets)
                )
        return loop

    def _causes(self, rows: tuple[_core.CauseRow, ...]) -> list[tuple[int, int, int, int]]:
        return [
            (self.statement(statement), self.path(path), calls, ns)
            for statement, path, calls, ns in rows
        ]

    def _thread(self, number: int) -> int:
        if number not in self._threads:
            self._threads[number] = self._opened().thread(self._process, _core.thread(number))
        return self._threads[number]

    def span(self, number: int) -> int:
        """The file's number of the recorder's, as the following two."""
        if number not in self._spans:
            self._spans[number] = self._opened().span(_core.span(number))
        return self._spans[number]

    def statement(self, number: int) -> int:
        if number not in self._statements:
            self._statements[number] = self._opened().statement(_core.statement(number))
        return self._statements[number]

    def path(self, number: int) -> int:
        if number not in self._paths:
            self._paths[number] = self._opened().stack(_frames(_core.path(number)))
        return self._paths[number]


def pairs(flat: tuple[int, ...]) -> list[tuple[int, int]]:
    """(bucket, how many) pairs from the core's flat tuples."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def _frames(rows: tuple[_core.FrameRow, ...]) -> list[tuple[str, str, int, str]]:
    return [(function, file, line, KINDS[kind]) for function, file, line, kind in rows]
