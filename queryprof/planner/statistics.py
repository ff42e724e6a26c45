"""Read and set the statistics of ANALYZE (https://www.sqlite.org/fileformat2.html#stat1tab)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from queryprof.planner.judging import BEFORE, Judge, StatementError


def read_statistics(judge: Judge, copy: str = BEFORE) -> tuple[tuple[object, ...], ...]:
    """Return the statistics in the database; empty if ANALYZE has not run."""
    try:
        return tuple(judge.rows(copy, "SELECT tbl, idx, stat FROM sqlite_stat1"))
    except StatementError:
        return ()


def set_statistics(judge: Judge, copy: str, statistics: Iterable[tuple[object, ...]]) -> None:
    """Replace the statistics that the planner uses for a copy."""
    judge.execute(copy, "ANALYZE")
    # sqlite_stat4 exists only in some builds of SQLite
    for table in ("sqlite_stat1", "sqlite_stat4"):
        with suppress(StatementError):
            judge.execute(copy, f"DELETE FROM {table}")
    for row in statistics:
        judge.rows(copy, "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", row)
    # SQLite keeps the row counts of tables in memory until it reads the schema again.
    judge.execute(copy, "PRAGMA writable_schema = RESET")
    judge.execute(copy, "ANALYZE sqlite_schema")
