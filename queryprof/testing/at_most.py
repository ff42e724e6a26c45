"""`with queryprof.at_most(queries=5)`: limits for a block of any test or program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.core.absence import is_core_absent
from queryprof.testing.calls import Calls
from queryprof.testing.limits import Limits, excess_of_limits, limits_of
from queryprof.testing.meter import ENDED, Block, meter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self


class at_most:
    """Limit the database work of a `with` block.

        with queryprof.at_most(queries=5, vm_steps=20_000, plans="no full scan of app_order"):
            ...

    When the block ends without an exception of its own, this raises AssertionError if a limit is
    exceeded. The message lists the statements and their lines.

    Statements of all threads in the process count. SAVEPOINT, RELEASE, ROLLBACK TO and BEGIN do
    not, because frameworks add them. If the process is not being recorded, it is recorded for the
    block. On systems other than Linux nothing can be recorded: this prints a warning once and
    checks nothing.

    Args:
        queries: number of executed statements.
        repeats: number of executions of one statement from one line.
        rows: number of rows that all statements return or change, as counted by the driver.
        vm_steps: SQLite's count of its work, the same on every machine. BEGIN, SAVEPOINT, RELEASE
            and ROLLBACK TO do not count.
        plans: what no plan may contain: "no full scan", "no full scan of TABLE", "no sort" or "no
            automatic index"; give a list for several. The check fails if no statement uses TABLE.
            "no seq scan" and "no seq scan of TABLE" are for PostgreSQL: the server in QUERYPROF_DSN
            must have another plan for each statement, however small the tables are.
        lock_wait_ms: how long one call may wait for a lock on a database file.
        transaction_ms: how long the write lock of a file may be held.
        stall_ms: how long an event loop may be blocked.

    Raises:
        TypeError, ValueError: a limit has an invalid value.
        AssertionError: a limit is exceeded, or cannot be checked because the figure is unknown (VM
            steps or plans of another database's driver).
        SessionError: this process cannot be recorded.
    """

    def __init__(
        self,
        queries: int | None = None,
        *,
        repeats: int | None = None,
        rows: int | None = None,
        vm_steps: int | None = None,
        plans: str | Iterable[str] | None = None,
        lock_wait_ms: float | None = None,
        transaction_ms: float | None = None,
        stall_ms: float | None = None,
        **others: object,
    ) -> None:
        given = {
            "queries": queries,
            "repeats": repeats,
            "rows": rows,
            "vm_steps": vm_steps,
            "plans": plans,
            "lock_wait_ms": lock_wait_ms,
            "transaction_ms": transaction_ms,
            "stall_ms": stall_ms,
            **others,
        }
        limits = {name: one for name, one in given.items() if one is not None}
        if not limits:
            raise TypeError("at_most: give at least one limit, such as queries=5")
        self._limits = limits_of(limits)
        self._blocks: list[Block] = []

    def __enter__(self) -> Self:
        if is_core_absent():
            return self
        self._blocks.append(meter.open(with_plans=self._limits.is_of_plans))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        __tracebackhide__ = True
        if not self._blocks:
            return  # nothing can be recorded here
        block = self._blocks.pop()
        try:
            message = (
                excess_message(block, self._limits)
                if kind is None and block.is_of_this_process
                else ""
            )
        finally:
            meter.close(block)
        if message:
            raise AssertionError(message)


def excess_message(block: Block, limits: Limits) -> str:
    """Return a message about the limits that an open block exceeds, or ""."""
    meter.border()
    if not block.is_whole:
        return ENDED
    return excess_of_limits(
        limits, Calls(block.parts, meter.descriptions, RegressionRules(), test_thread="")
    )
