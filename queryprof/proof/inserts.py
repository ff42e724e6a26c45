"""What an insert into a table takes, with and without what is tried."""

from __future__ import annotations

from queryprof.proof.index import quoted
from queryprof.proof.judging import AFTER, BEFORE, Judge, StatementError
from queryprof.proof.schema import Table


def insert_costs(judge: Judge, table: Table, rounds: int) -> dict[str, float]:
    """Time (ns) of an insert into a table on both copies; nothing when it cannot be measured."""
    try:
        key, columns = ([quoted(one) for one in names] for names in (table.key, table.inserted))
        return dict(judge.insert_ns((BEFORE, AFTER), quoted(table.name), key, columns, rounds))
    except StatementError:
        return {}
