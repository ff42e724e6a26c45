"""The recorder's drain in memory: a sink that turns what was recorded into the model's rows.

For readers inside the recorded process that ask often and keep little, like the pytest plugin; a
trace file would cost them milliseconds each time.
"""

from __future__ import annotations

import os

from queryprof.core import _core
from queryprof.core.recorder import Work, complain
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
from queryprof.trace.writer import KINDS


class Drain:
    """Holds what was recorded since it was last taken.

    Attributes:
        has_details: whether it keeps aggregates, steps and plans; else sums alone, for a tenth
            of the time.
    """

    def __init__(self) -> None:
        self._operations = _core.operations()
        self._statements: dict[int, str] = {}
        self._paths: dict[int, CallPath] = {}
        self._rows: list[_core.AggregateRow] = []
        self._steps: list[Step] = []
        self._plans: list[Plan] = []
        self._executions = 0
        self._database_ns = 0
        self.has_details = True
        self._statement_operations = {
            number for number, name in enumerate(self._operations) if name in STATEMENT_OPERATIONS
        }

    def take(self) -> list[Aggregate]:
        """What was flushed here since the last taking; the caller flushes first."""
        taken, self._rows = self._rows, []
        return [self._aggregate(row) for row in taken]

    def take_sums(self) -> tuple[int, int]:
        """Executions of statements, and nanoseconds in the database, until the last flush."""
        taken = self._executions, self._database_ns
        self._executions = self._database_ns = 0
        return taken

    def take_steps(self) -> list[Step]:
        """What event loops ran until the last flush; without histograms."""
        taken, self._steps = self._steps, []
        return taken

    def take_plans(self) -> list[Plan]:
        """The plans that were met until the last flush."""
        taken, self._plans = self._plans, []
        return taken

    def begin(self) -> None:
        pass

    def add_aggregates(self, rows: list[_core.AggregateRow]) -> None:
        for row in rows:
            self._database_ns += row[9]
            if row[4] in self._statement_operations:
                self._executions += row[5]
        if self.has_details:
            self._rows += rows

    def _aggregate(self, row: _core.AggregateRow) -> Aggregate:
        statement, path, span, thread, operation = row[:5]
        steps, scans, sorts, indexes, reprepares, fetches, counted, samples = row[14:22]
        buckets = row[22]
        return Aggregate(
            self._statement(statement),
            self._path(path),
            _core.span(span) if span else "",
            Thread(os.getpid(), _core.thread(thread)),
            self._operations[operation],
            *row[5:14],
            Counters(counted, steps, scans, sorts, indexes, reprepares, fetches, samples),
            dict(zip(buckets[::2], buckets[1::2], strict=True)),
        )  # fmt: skip

    def _statement(self, number: int) -> str:
        text = self._statements.get(number)
        if text is None:
            text = self._statements[number] = _core.statement(number)
        return text

    def _path(self, number: int) -> CallPath:
        path = self._paths.get(number)
        if path is None:
            path = self._paths[number] = tuple(
                Frame(function, file, line, KINDS[kind])
                for function, file, line, kind in _core.path(number)
            )
        return path

    def add_errors(self, rows: list[_core.ErrorRow]) -> None:
        pass

    def add_exemplars(self, rows: list[_core.ExemplarRow]) -> None:
        pass

    def add_stack_samples(self, rows: list[_core.StackSampleRow]) -> None:
        pass

    def add_plans(self, rows: list[_core.PlanRow]) -> None:
        if self.has_details:
            self._plans += [Plan(self._statement(row[0]), *row[1:]) for row in rows]

    def add_work(self, work: Work) -> None:
        pass

    def add_timeline(self, width_ns: int, rows: list[_core.TimelineRow]) -> None:
        pass

    def add_loops(
        self,
        loops: list[_core.LoopRow],  # noqa: ARG002 a sink's
        steps: list[_core.StepRow],
        stalls: list[_core.StallRow],  # noqa: ARG002
    ) -> None:
        for _, (function, file, line, kind), durations, database_ns, gc_ns, causes in steps:
            self._steps.append(
                Step(
                    Frame(function, file, line, KINDS[kind]),
                    Distribution(*durations[:3]),
                    database_ns,
                    gc_ns,
                    tuple(Cause(self._statement(c[0]), self._path(c[1]), *c[2:]) for c in causes),
                )
            )

    def commit(self, flush_ns: int, losses: tuple[int, int, int, int]) -> None:
        pass

    def fail(self, error: Exception) -> None:
        complain(f"recording for the tests ended: {error}")
