"""Read what was recorded since the last reading.

This is for code inside the recorded process that reads often and keeps little, such as the pytest
plugin. Writing a trace each time would take milliseconds.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.operations import STATEMENT_OPERATIONS
from queryprof.region.region import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    Change = tuple[int, int, bytes, bytes]

FIGURES = ("statement", "operation", "count", "self_ns", "full_scan_steps")


class ChangeSet:
    """The changes between two readings. Statements, plans and operations are numbers;
    queryprof.region.descriptions converts them to objects.

    Attributes:
        executions: number of executions.
        database_ns: time in the database.
        executed: executions and full-scan steps, by the statement's number.
        aggregates, steps, waits, holds: changed rows as pairs (before, now).
        plans: numbers of the executed plans.
    """

    __slots__ = (
        "aggregates",
        "database_ns",
        "executed",
        "executions",
        "holds",
        "plans",
        "steps",
        "waits",
    )

    def __init__(self) -> None:
        self.executions = self.database_ns = 0
        self.executed: dict[int, tuple[int, int]] = {}
        self.aggregates: list[tuple[bytes, bytes]] = []
        self.steps: list[tuple[bytes, bytes]] = []
        self.waits: list[tuple[bytes, bytes]] = []
        self.holds: list[tuple[bytes, bytes]] = []
        self.plans: list[int] = []


class ChangeReader:
    """Reads the changes in this process's recording. Only one instance can be open."""

    def __init__(self) -> None:
        tables = Region(_core.region()).tables
        order = list(tables)
        self._aggregates = order.index("aggregates")
        self._steps = order.index("steps")
        self._waits, self._holds = order.index("file_work"), order.index("locks")
        self._figures = tables["aggregates"].decoder(FIGURES)
        self._asking = {
            number
            for number, name in enumerate(_core.operation_names())
            if name in STATEMENT_OPERATIONS
        }
        _core.take_changed_rows(True)
        _core.take_used_plans()

    def take(self, with_plans: bool) -> ChangeSet:
        """Return the changes since the last call. `plans` has the plans executed since the last
        call with `with_plans`.
        """
        part = ChangeSet()
        changes: list[Change] = _core.take_changed_rows(True)
        for table, _, before, now in changes:
            if table == self._aggregates:
                part.aggregates.append((before, now))
                statement, operation, count, self_ns, scanned = self._figures.unpack(now)
                _, _, count_before, self_before_ns, scanned_before = self._figures.unpack(before)
                part.database_ns += self_ns - self_before_ns
                if operation in self._asking:
                    part.executions += count - count_before
                    executions, steps = part.executed.get(statement, (0, 0))
                    part.executed[statement] = (
                        executions + count - count_before,
                        steps + scanned - scanned_before,
                    )
            elif table == self._steps:
                part.steps.append((before, now))
            elif table == self._waits:
                part.waits.append((before, now))
            elif table == self._holds:
                part.holds.append((before, now))
        if with_plans:
            part.plans = _core.take_used_plans()
        return part

    def close(self) -> None:
        """Stop collecting changes."""
        if _core.is_on():
            _core.take_changed_rows(False)
