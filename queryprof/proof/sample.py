"""A sample of a large database: indexes are chosen on it, and measured on the whole copy."""

from __future__ import annotations

import contextlib

from queryprof.proof.index import quoted
from queryprof.proof.judging import BEFORE, WHOLE, Judge, StatementError
from queryprof.proof.schema import DatabaseSchema, Table, create
from queryprof.proof.statistics import set_statistics, statistics_of

LARGE_BYTES, SAMPLE_BYTES = 200_000_000, 40_000_000
LARGE_ROWS = 10_000
"""Of a table with fewer rows all are in the sample."""


def take_sample(judge: Judge, address: str, schema: DatabaseSchema) -> int:
    """Puts a sample in the copy's place, if that is large; it is WHOLE then.

    Args:
        address: of the database, a URI.

    Returns:
        Every how many-th row of the large tables is in it; 1: the copy is as it was.

    Raises:
        OutOfTime: see Judge.
    """
    every = round(judge.size(BEFORE) / SAMPLE_BYTES)
    if judge.size(BEFORE) <= LARGE_BYTES or every < 2:
        return 1
    statistics = statistics_of(judge)
    judge.rename(BEFORE, WHOLE)
    judge.blank(BEFORE)
    judge.enforce_references(BEFORE, False)  # rows may refer to some that are not in it
    judge.attach(BEFORE, address, "original")
    for table in schema.tables:
        if create(judge, table.sql, BEFORE):
            _fill(judge, table, every)
    judge.detach(BEFORE, "original")
    for sql in schema.others:
        create(judge, sql, BEFORE)
    if statistics:
        set_statistics(judge, BEFORE, statistics)
    judge.enforce_references(BEFORE, judge.has_references)
    return every


def _fill(judge: Judge, table: Table, every: int) -> None:
    columns = ", ".join(quoted(name) for name in table.inserted)
    name = quoted(table.name)
    # Not every n-th row as such: what repeats in a table might have the same period.
    place = "rowid * 48271 % 65537" if table.has_rowid else "abs(random())"
    chosen = f" WHERE {place} % {every} = 0" if table.rows > LARGE_ROWS else ""
    copied = f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM original.{name}{chosen}"
    with contextlib.suppress(StatementError):  # what reads it is then measured on few rows or none
        judge.do(BEFORE, copied)
