"""Sample a large database. Indexes are chosen on the sample, and measured on the whole copy."""

from __future__ import annotations

import contextlib

from queryprof.planner.judging import BEFORE, WHOLE, Judge, StatementError
from queryprof.planner.statistics import read_statistics, set_statistics
from queryprof.proof.index import quote_name
from queryprof.proof.schema import DatabaseSchema, SchemaTable, create_object

LARGE_BYTES, SAMPLE_BYTES = 200_000_000, 40_000_000
LARGE_ROWS = 10_000
"""Tables with fewer rows are copied completely."""


def replace_by_sample(judge: Judge, address: str, schema: DatabaseSchema) -> int:
    """Replace a large copy BEFORE by a sample, and rename the whole copy to WHOLE.

    Args:
        address: the database's URI.

    Returns:
        n if the sample has about one in n rows of the large tables; 1 if the copy is unchanged.

    Raises:
        OutOfTime: the judge's deadline has passed.
    """
    every = round(judge.used_bytes(BEFORE) / SAMPLE_BYTES)
    if judge.used_bytes(BEFORE) <= LARGE_BYTES or every < 2:
        return 1
    statistics = read_statistics(judge)
    judge.rename(BEFORE, WHOLE)
    judge.create_empty(BEFORE)
    judge.switch(BEFORE, "foreign_keys", False)  # a sampled row may refer to a missing row
    judge.attach(BEFORE, address, "original")
    for table in schema.tables:
        if create_object(judge, table.sql, BEFORE):
            _fill_sample_table(judge, table, every)
    judge.detach(BEFORE, "original")
    for sql in schema.others:
        create_object(judge, sql, BEFORE)
    if statistics:
        set_statistics(judge, BEFORE, statistics)
    judge.switch(BEFORE, "foreign_keys", judge.has_references)
    return every


def _fill_sample_table(judge: Judge, table: SchemaTable, every: int) -> None:
    columns = ", ".join(quote_name(name) for name in table.insertable_columns)
    name = quote_name(table.name)
    # Hash the rowid instead of taking every n-th row, because values may repeat with the same
    # period.
    place = "rowid * 48271 % 65537" if table.has_rowid else "abs(random())"
    chosen = f" WHERE {place} % {every} = 0" if table.rows > LARGE_ROWS else ""
    copied = f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM original.{name}{chosen}"
    # If this fails, the sample of the table is empty or incomplete.
    with contextlib.suppress(StatementError):
        judge.execute(BEFORE, copied)
