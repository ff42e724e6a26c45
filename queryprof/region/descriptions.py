"""What changed in the recording of this process, as objects of the model."""

from __future__ import annotations

import os
from operator import sub

from queryprof.core import _core
from queryprof.model import (
    Aggregate,
    CallPath,
    Cause,
    Distribution,
    Frame,
    LockTime,
    Plan,
    Step,
    Thread,
)
from queryprof.region.names import CODE_KINDS, LOCK_KINDS
from queryprof.region.pending import EXTREMES, KEY, NONE_NS, SUMS
from queryprof.region.region import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from queryprof.region.changes import Part

AGGREGATE = (*KEY, *SUMS, *EXTREMES)
STEP = (
    "loop", "line", "gc_ticks", "durations_number", "durations_total_ns", "durations_max_ns",
    "database_ticks", "first_cause",
)  # fmt: skip


class Descriptions:
    """Describes parts of the recording of this process, and caches names."""

    def __init__(self) -> None:
        self._region = Region(_core.region())
        self._aggregate = self._region.tables["aggregates"].decoder(AGGREGATE)
        self._step = self._region.tables["steps"].decoder(STEP)
        self._operations = _core.operations()
        self._statements: dict[int, str] = {}
        self._paths: dict[int, CallPath] = {}
        self._threads: dict[int, Thread] = {}
        self._names: dict[tuple[str, int], str] = {}

    def aggregates(self, part: Part) -> list[Aggregate]:
        """What changed, without histograms."""
        unpack = self._aggregate.unpack
        return [self._described(unpack(before), unpack(now)) for before, now in part.aggregates]

    def _described(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> Aggregate:
        statement, path, span, thread, operation = now[:5]
        count, errors, rows, total_ns, self_ns, squares, *c = map(sub, now[5:19], before[5:19])
        shortest, longest, longest_execution = now[19:22]
        return Aggregate(
            self._statement(statement),
            self._path(path),
            self._name("spans", span),
            self._thread(thread),
            self._operations[operation],
            count, errors, rows, total_ns, self_ns, 0 if shortest == NONE_NS else shortest, longest,
            longest_execution, max(squares, 0.0),
            *c,
        )  # fmt: skip

    def steps(self, part: Part) -> list[Step]:
        """The steps of event loops; their causes are those of all the function's steps so far."""
        unpack = self._step.unpack
        return [self._described_step(unpack(before), unpack(now)) for before, now in part.steps]

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

    def lock_times(self, part: Part) -> list[LockTime]:
        """The longest waits for locks, and the longest holds of write locks, of each statement and
        line.
        """
        kind_of = self._region.tables["locks"].decoder(("kind",)).unpack
        writes = [row for row in part.holds if LOCK_KINDS[kind_of(row[1])[0]] == "write"]
        found = []
        for kind, table, rows, longest in (
            ("wait", "file_work", part.waits, "max_lock_ticks"),
            ("hold", "locks", writes, "max_ticks"),
        ):
            unpack = self._region.tables[table].decoder(("statement", "path", longest)).unpack
            for _, now in rows:
                statement, path, ticks = unpack(now)
                found.append(
                    LockTime(
                        kind, self._statement(statement), self._path(path), self._region.ns(ticks)
                    )
                )
        return found

    def plans(self, part: Part) -> list[Plan]:
        """The plans that were executed."""
        found = []
        for number in part.plans:
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
        (at,) = self._region.row("statements", number, ("text",))
        text = self._statements.get(at)  # a statement gets its text when it is first accepted
        if text is None:
            text = self._statements[at] = self._region.text(at)
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
        return Frame(self._region.text(function), self._region.text(file), line, CODE_KINDS[kind])
