"""`with queryprof.at_most(queries=5)`: a block of any test or program, held to limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryprof.analysis.baseline_rules import Rules
from queryprof.core.absence import is_absent
from queryprof.testing.calls import Calls
from queryprof.testing.limits import Limits, exceeded, limits_of
from queryprof.testing.meter import ENDED, Block, meter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self


class at_most:
    """Holds a block to limits: raises AssertionError that shows what exceeds them, with the
    statements and their lines, when the block ends without an exception of its own.

        with queryprof.at_most(queries=5, vm_steps=20_000, plans="no full scan of app_order"):
            ...

    What all threads of the process execute meanwhile counts, but for SAVEPOINT, RELEASE,
    ROLLBACK TO and BEGIN, which frameworks add. Where nothing is recorded, it is for the block;
    where nothing can be (another system than Linux), it says so once, and holds it to nothing.

    Args:
        queries: executions of statements.
        repeats: executions of one statement from one line.
        rows: that all statements return or change, as the driver counts them.
        vm_steps: that they take: SQLite's count of its work, the same on every machine. Those of
            BEGIN, SAVEPOINT, RELEASE and ROLLBACK TO are left out, as they are of queries.
        plans: what no plan may have: "no full scan", "no full scan of TABLE", "no sort", "no
            automatic index"; several are a list. A table that no statement is about fails, too.
            "no seq scan", "no seq scan of TABLE" are PostgreSQL's: the server that QUERYPROF_DSN
            names is to have another plan for each statement, however small the tables are.
        lock_wait_ms: how long one call may wait for a lock of a database file.
        transaction_ms: how long the write lock of a file may be held.
        stall_ms: how long an event loop may be blocked.

    Raises:
        TypeError, ValueError: a limit has a value that is none.
        AssertionError: a limit is exceeded, or cannot be checked, because what it is about is not
            known (the VM steps or plans of a driver of another database).
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
            raise TypeError("at_most: name a limit, such as queries=5")
        self._limits = limits_of(limits)
        self._blocks: list[Block] = []

    def __enter__(self) -> Self:
        if is_absent():
            return self
        self._blocks.append(meter.open(with_plans=self._limits.is_of_plans))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        __tracebackhide__ = True
        if not self._blocks:
            return  # nothing is recorded here
        block = self._blocks.pop()
        try:
            message = (
                judged(block, self._limits) if kind is None and block.is_of_this_process else ""
            )
        finally:
            meter.close(block)
        if message:
            raise AssertionError(message)


def judged(block: Block, limits: Limits) -> str:
    """What of an open block exceeds its limits; "": nothing."""
    meter.border()
    if not block.is_whole:
        return ENDED
    return exceeded(limits, Calls(block.parts, meter.descriptions, Rules(), test_thread=""))
