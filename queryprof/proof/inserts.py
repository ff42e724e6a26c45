"""Measure how much indexes slow down the recorded inserts, and list the indexes that cost more than
they save.
"""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.model.advice import OutweighedIndexes
from queryprof.planner.judging import AFTER, BEFORE, Judge, StatementError
from queryprof.proof.index import Candidate, quote_name
from queryprof.proof.schema import DatabaseSchema, SchemaTable
from queryprof.proof.workload import RecordedStatement

ROUNDS = 3


class RecordedInserts:
    """The inserts of a recording.

    Attributes:
        outweighed: indexes whose cost for inserts, or for other statements, exceeds their savings,
            in the order of trial.
    """

    def __init__(
        self, judge: Judge, schema: DatabaseSchema, queries: Iterable[RecordedStatement]
    ) -> None:
        self._judge, self._schema = judge, schema
        self._recorded: dict[str, int] = {}
        self.outweighed: list[tuple[tuple[Candidate, ...], OutweighedIndexes]] = []
        for query in queries:
            if query.inserts_into:
                name = query.inserts_into.lower()
                self._recorded[name] = self._recorded.get(name, 0) + query.executions

    def recorded_count(self, table: str) -> int:
        """Return the number of recorded inserts into a table."""
        return self._recorded.get(table.lower(), 0)

    def extra_insert_ns(self, table: str) -> float | None:
        """Return how much longer (ns) an insert takes with the changes on the copy; None if
        unknown.
        """
        found = self._schema.table(table)
        if not found or not found.rows:
            return None
        costs = insert_costs(self._judge, found, ROUNDS)
        return costs[AFTER] - costs[BEFORE] if costs else None

    def loss_ns(self, indexes: Iterable[Candidate]) -> float:
        """Return the additional time (ns) of the recorded inserts with these indexes."""
        return sum(
            recorded * (self.extra_insert_ns(one.table) or 0.0)
            for one in indexes
            if (recorded := self.recorded_count(one.table))
        )

    def store_outweighed(
        self,
        indexes: dict[Candidate, str],
        faster: Iterable[str],
        win_ns: float,
        loss_ns: float,
        slower: Iterable[str],
    ) -> None:
        """Store indexes (with their names) that make statements faster but cost more than they
        save.
        """
        recorded = sum(self.recorded_count(table) for table in {one.table for one in indexes})
        sql = " ".join(f"{one.sql(name)};" for one, name in indexes.items())
        self.outweighed.append(
            (
                tuple(indexes),
                OutweighedIndexes(sql, tuple(faster), win_ns, loss_ns, recorded, tuple(slower)),
            )
        )


def insert_costs(judge: Judge, table: SchemaTable, rounds: int) -> dict[str, float]:
    """Return the time (ns) of an insert into a table on both copies; empty if it cannot be
    measured.
    """
    try:
        key, columns = (
            [quote_name(one) for one in names] for names in (table.key, table.insertable_columns)
        )
        return dict(judge.insert_ns((BEFORE, AFTER), quote_name(table.name), key, columns, rounds))
    except StatementError:
        return {}
