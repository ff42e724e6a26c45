"""What was recorded since it was last asked: for those inside the recorded process who ask often and
keep little, like the pytest plugin. A trace would cost them milliseconds each time.
"""

from __future__ import annotations

import os
from operator import sub

from queryprof.core import _core
from queryprof.model import (
    STATEMENT_OPERATIONS,
    Aggregate,
    CallPath,
    Cause,
    Counters,
    Distribution,
    Frame,
    Plan,
    Step,
    Thread,
)
from queryprof.trace.convert import KINDS
from queryprof.trace.pending import EXTREMES, KEY, NONE_NS, SUMS
from queryprof.trace.region import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Change = tuple[int, int, bytes, bytes]

AGGREGATE = (*KEY, *SUMS, *EXTREMES)
FIGURES = ("operation", "count", "self_ns")
STEP = (
    "loop", "line", "gc_ticks", "durations_number", "durations_total_ns", "durations_max_ns",
    "database_ticks", "first_cause",
)  # fmt: skip


class Changes:
    """Watches the recording of this process; one at a time.

    Attributes:
        aggregates, steps, plans: of the last taking; without histograms, and of steps, causes with
            all that the function's steps ever asked.
    """

    def __init__(self) -> None:
        self._region = Region(_core.region())
        tables = self._region.tables
        order = list(tables)
        self._aggregates = order.index("aggregates")
        self._steps = order.index("steps")
        self._aggregate = tables["aggregates"].decoder(AGGREGATE)
        self._figures = tables["aggregates"].decoder(FIGURES)
        self._step = tables["steps"].decoder(STEP)
        self._operations = _core.operations()
        self._asking = {
            number for number, name in enumerate(self._operations) if name in STATEMENT_OPERATIONS
        }
        self._statements: dict[int, str] = {}
        self._paths: dict[int, CallPath] = {}
        self._threads: dict[int, Thread] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._changes: list[Change] = []
        _core.changes(True)
        _core.plans_met()

    def take(self) -> tuple[int, int]:
        """Takes what was recorded since the last taking: executions of statements, and nanoseconds in
        the database.
        """
        self._changes = _core.changes(True)
        executions = database_ns = 0
        for table, _, before, now in self._changes:
            if table == self._aggregates:
                operation, count, self_ns = self._figures.unpack(now)
                _, count_before, self_before_ns = self._figures.unpack(before)
                database_ns += self_ns - self_before_ns
                if operation in self._asking:
                    executions += count - count_before
        return executions, database_ns

    def close(self) -> None:
        """Watches no more."""
        if _core.is_on():
            _core.changes(False)

    def aggregates(self) -> list[Aggregate]:
        """What changed in the last taking."""
        return [
            self._described(self._aggregate.unpack(before), self._aggregate.unpack(now))
            for table, _, before, now in self._changes
            if table == self._aggregates
        ]

    def _described(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> Aggregate:
        statement, path, span, thread, operation = now[:5]
        count, errors, rows, total_ns, self_ns, squares, *c = map(sub, now[5:19], before[5:19])
        shortest, longest, longest_execution = now[19:22]
        steps, scans, sorts, indexes, reprepares, fetches, counted, samples = c
        return Aggregate(
            self._statement(statement),
            self._path(path),
            self._name("spans", span),
            self._thread(thread),
            self._operations[operation],
            count, errors, rows, total_ns, self_ns, 0 if shortest == NONE_NS else shortest, longest,
            longest_execution, max(squares, 0.0),
            Counters(counted, steps, scans, sorts, indexes, reprepares, fetches, samples),
            {},
        )  # fmt: skip

    def steps(self) -> list[Step]:
        """What event loops ran in the last taking."""
        return [
            self._described_step(self._step.unpack(before), self._step.unpack(now))
            for table, _, before, now in self._changes
            if table == self._steps
        ]

    def _described_step(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> Step:
        _, line, gc, count, total_ns, max_ns, database, first = now
        ns = self._region.ns
        return Step(
            self._frame(line),
            Distribution(count - before[3], total_ns - before[4], max_ns),
            ns(database - before[6]),
            ns(gc - before[2]),
            tuple(self._causes(first)) if database > before[6] else (),
        )

    def _causes(self, first: int) -> Iterable[Cause]:
        while first:
            columns = ("next", "statement", "path", "calls", "ticks")
            first, statement, path, calls, ticks = self._region.row("causes", first - 1, columns)
            yield Cause(
                self._statement(statement), self._path(path), calls, self._region.ns(ticks)
            )  # fmt: skip

    def plans(self) -> list[Plan]:
        """The plans that were met since this was last asked."""
        found = []
        for number in _core.plans_met():
            columns = ("statement", "database", "tree")
            statement, database, tree = self._region.row("plans", number, columns)
            found.append(
                Plan(
                    self._statement(statement),
                    self._region.text(database),
                    self._region.text(tree),
                )
            )
        return found

    def _statement(self, number: int) -> str:
        text = self._statements.get(number)
        if text is None:
            (at,) = self._region.row("statements", number, ("text",))
            text = self._statements[number] = self._region.text(at)
        return text

    def _name(self, table: str, number: int) -> str:
        name = self._names.get((table, number))
        if name is None:
            (at,) = self._region.row(table, number, ("name",))
            name = self._names[table, number] = self._region.text(at)
        return name

    def _thread(self, number: int) -> Thread:
        thread = self._threads.get(number)
        if thread is None or thread.process_id != os.getpid():
            thread = self._threads[number] = Thread(os.getpid(), self._name("threads", number))
        return thread

    def _path(self, number: int) -> CallPath:
        path = self._paths.get(number)
        if path is None:
            frames, at = [], number
            while at:
                at, line = self._region.row("stacks", at, ("outer", "line"))
                frames.append(self._frame(line))
            path = self._paths[number] = tuple(frames)
        return path

    def _frame(self, number: int) -> Frame:
        function, file, line, kind = self._region.row(
            "lines", number, ("function", "file", "line", "kind")
        )
        return Frame(self._region.text(function), self._region.text(file), line, KINDS[kind])
