"""What ANALYZE has found in a database (https://www.sqlite.org/fileformat2.html#stat1tab)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from queryprof.proof.judging import BEFORE, Judge, StatementError


def statistics_of(judge: Judge, copy: str = BEFORE) -> tuple[tuple[object, ...], ...]:
    """What ANALYZE has found in the database: nothing, where it has not run."""
    try:
        return tuple(judge.rows(copy, "SELECT tbl, idx, stat FROM sqlite_stat1"))
    except StatementError:
        return ()


def set_statistics(judge: Judge, copy: str, statistics: Iterable[tuple[object, ...]]) -> None:
    """Lets the planner choose on a copy as if that had been found there."""
    judge.do(copy, "ANALYZE")
    for table in ("sqlite_stat1", "sqlite_stat4"):  # the second where SQLite was built so
        with suppress(StatementError):
            judge.do(copy, f"DELETE FROM {table}")
    for row in statistics:
        judge.rows(copy, "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", row)
    # SQLite keeps in memory how many rows a table had, until the schema is read again.
    judge.do(copy, "PRAGMA writable_schema = RESET")
    judge.do(copy, "ANALYZE sqlite_schema")
