"""Describe the changes in this process's recording as objects of the model."""

from __future__ import annotations

import os

from queryprof.core import _core
from queryprof.core.systems import SYSTEMS
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

    from queryprof.region.changes import ChangeSet

AGGREGATE = (*KEY, *SUMS, *EXTREMES)
STEP = (
    "loop",
    "line",
    "gc_ticks",
    "durations_number",
    "durations_total_ns",
    "durations_max_ns",
    "database_ticks",
    "first_cause",
)
STEP_SUMS = ("durations_number", "durations_total_ns", "database_ticks", "gc_ticks")


class Descriptions:
    """Describes parts of this process's recording, and caches names."""

    def __init__(self) -> None:
        self._region = Region(_core.region())
        self._aggregate = self._region.tables["aggregates"].decoder(AGGREGATE)
        self._step = self._region.tables["steps"].decoder(STEP)
        self._operations = _core.operation_names()
        self._statements: dict[int, str] = {}
        self._numbers: dict[str, int] = {}  # by text
        self._paths: dict[int, CallPath] = {}
        self._threads: dict[int, Thread] = {}
        self._names: dict[tuple[str, int], str] = {}

    def aggregates(self, part: ChangeSet) -> list[Aggregate]:
        """Return the changed aggregates, without histograms."""
        unpack = self._aggregate.unpack
        return [
            self._describe_change(unpack(before), unpack(now)) for before, now in part.aggregates
        ]

    def _describe_change(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> Aggregate:
        row, was = (dict(zip(AGGREGATE, values, strict=True)) for values in (now, before))
        figures = {name: row[name] - was[name] for name in SUMS}
        figures["execution_sum_sq_ns2"] = max(figures["execution_sum_sq_ns2"], 0.0)
        figures |= {name: row[name] for name in EXTREMES}
        if row["min_ns"] == NONE_NS:
            figures["min_ns"] = 0
        return Aggregate(
            self._statement(row["statement"]),
            self._path(row["path"]),
            self._name("spans", row["span"]),
            self._thread(row["thread"]),
            self._operations[row["operation"]],
            **figures,
        )

    def steps(self, part: ChangeSet) -> list[Step]:
        """Return the changed steps of event loops. Causes are totals since the recording began."""
        unpack = self._step.unpack
        return [self._described_step(unpack(before), unpack(now)) for before, now in part.steps]

    def _described_step(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> Step:
        row, was = (dict(zip(STEP, values, strict=True)) for values in (now, before))
        added = {name: row[name] - was[name] for name in STEP_SUMS}
        ns = self._region.ns
        return Step(
            self._frame(row["line"]),
            Distribution(
                added["durations_number"], added["durations_total_ns"], row["durations_max_ns"]
            ),
            ns(added["database_ticks"]),
            ns(added["gc_ticks"]),
            tuple(self._causes(row["first_cause"])) if added["database_ticks"] > 0 else (),
        )

    def _causes(self, first: int) -> Iterable[Cause]:
        while first:
            columns = ("next", "statement", "path", "calls", "ticks")
            first, statement, path, calls, ticks = self._region.row("causes", first - 1, columns)
            yield Cause(self._statement(statement), self._path(path), calls, self._region.ns(ticks))

    def lock_times(self, part: ChangeSet) -> list[LockTime]:
        """Return the longest lock waits and write lock holds of each statement and line."""
        kind_of = self._region.tables["locks"].decoder(("kind",)).unpack
        writes = []
        for before, now in part.holds:
            (kind,) = kind_of(now)
            if LOCK_KINDS[kind] == "write":
                writes.append((before, now))
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

    def plans(self, part: ChangeSet) -> list[Plan]:
        """Return the executed plans."""
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

    def library_note(self, statement: str) -> str:
        """Return a library's note on a statement that was described here; "" without one."""
        number = self._numbers.get(statement)
        if number is None:
            return ""
        (at,) = self._region.row("statements", number, ("note",))
        return self._region.text(at) if at else ""

    def system_of(self, statement: str) -> str:
        """Return the database system of a statement that was described here; "" if unknown."""
        number = self._numbers.get(statement)
        (found,) = (
            self._region.row("statements", number, ("system",)) if number is not None else (0,)
        )
        return SYSTEMS[found] if found < len(SYSTEMS) else ""

    def _statement(self, number: int) -> str:
        (at,) = self._region.row("statements", number, ("text",))
        text = self._statements.get(at)  # a statement gets its text when it is first accepted
        if text is None:
            text = self._statements[at] = self._region.text(at)
            self._numbers[text] = number
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
