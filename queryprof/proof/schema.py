"""Read the schema of the copied database: its tables, columns and indexes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from queryprof.planner.dummies import run_with_dummies
from queryprof.planner.judging import BEFORE, EMPTY, Judge, StatementError
from queryprof.planner.statistics import read_statistics, set_statistics
from queryprof.proof.index import Candidate, IndexTerm, quote_name

OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
INDEXES = "SELECT name, partial FROM pragma_index_list(?)"
HIDDEN, GENERATED = 1, (2, 3)
"""Values of `hidden` in pragma_table_xinfo."""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column. `is_rowid` is True for INTEGER PRIMARY KEY, an alias of the rowid."""

    name: str
    type: str
    collation: str
    is_generated: bool
    is_rowid: bool


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """An ordinary table.

    Attributes:
        sql: the CREATE TABLE statement.
        key: the columns that identify rows; the rowid if the table has one.
        rows: the number of rows.
    """

    name: str
    sql: str
    columns: tuple[SchemaColumn, ...]
    key: tuple[str, ...]
    rows: int
    has_rowid: bool

    @property
    def insertable_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if not column.is_generated)

    def column(self, name: str) -> SchemaColumn | None:
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """The schema of a database.

    Attributes:
        others: the SQL of views, indexes, triggers and virtual tables, in the order of creation.
        indexes: the existing indexes on plain columns, including unique constraints, but not
            partial indexes.
        names: the names of all objects in lower case.
    """

    tables: tuple[SchemaTable, ...]
    others: tuple[str, ...]
    indexes: tuple[Candidate, ...]
    names: frozenset[str]

    def table(self, name: str) -> SchemaTable | None:
        return next((one for one in self.tables if one.name.lower() == name.lower()), None)


def read_schema(judge: Judge) -> DatabaseSchema:
    """Read the schema of the copy BEFORE, and create the same schema in the empty database EMPTY.

    Raises:
        StatementError: the copy is damaged.
    """
    objects = judge.rows(BEFORE, OBJECTS)
    listed = judge.rows(BEFORE, "SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    kinds = dict(listed)
    judge.create_empty(EMPTY)
    tables, others, indexes = [], [], []
    for kind, name, _table, sql in objects:
        own = name.startswith("sqlite_") or kinds.get(name) == "shadow"
        if own or not create_object(judge, sql):
            continue
        if kind == "table" and kinds.get(name) == "table":
            tables.append(_read_table(judge, name, sql))
        else:
            others.append(sql)
    for table in tables:
        for name, is_partial in judge.rows(EMPTY, INDEXES, (table.name,)):
            terms = _index_terms(judge, name, table)
            if terms and not is_partial:
                indexes.append(Candidate(table.name, terms))
    if kinds.get("sqlite_stat1"):
        set_statistics(judge, EMPTY, read_statistics(judge))
    names = frozenset(str(row[1]).lower() for row in objects)
    return DatabaseSchema(tuple(tables), tuple(others), tuple(indexes), names)


def create_object(judge: Judge, sql: str, copy: str = EMPTY) -> bool:
    """Execute a CREATE statement on a copy. Return False if SQLite refuses the statement."""
    with suppress(StatementError):
        run_with_dummies(judge, copy, lambda: judge.execute(copy, sql))
        return True
    return False


def _read_table(judge: Judge, name: str, sql: str) -> SchemaTable:
    listed = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)"
    info = [row for row in judge.rows(EMPTY, listed, (name,)) if row[3] != HIDDEN]
    try:
        judge.rows(EMPTY, f"SELECT rowid FROM {quote_name(name)}")
        has_rowid = True
    except StatementError:
        has_rowid = False
    rows = judge.rows(BEFORE, f"SELECT count(*) FROM {quote_name(name)}")[0][0]
    primary = [row for row in sorted(info, key=lambda row: row[2]) if row[2]]
    alias = (
        primary[0][0]
        if has_rowid and len(primary) == 1 and primary[0][1].upper() == "INTEGER"
        else None
    )
    collations = _collations(judge, name, [row[0] for row in info])
    columns = tuple(
        SchemaColumn(
            row[0], row[1], collations.get(row[0], "BINARY"), row[3] in GENERATED, row[0] == alias
        )
        for row in info
    )
    key = (alias or "rowid",) if has_rowid else tuple(row[0] for row in primary)
    return SchemaTable(name, sql, columns, key, int(rows), has_rowid)


def _collations(judge: Judge, table: str, columns: list[str]) -> dict[str, str]:
    """Return the collation of each column. SQLite reports collations only for indexes, so this
    creates an index on all columns.
    """
    listed = ", ".join(map(quote_name, columns))
    try:
        judge.execute(EMPTY, f"CREATE INDEX queryprof_columns ON {quote_name(table)} ({listed})")
    except StatementError:
        return {}
    rows = judge.rows(
        EMPTY, "SELECT name, coll FROM pragma_index_xinfo('queryprof_columns') WHERE key"
    )
    judge.execute(EMPTY, "DROP INDEX queryprof_columns")
    return {name: collation.upper() for name, collation in rows}


def _index_terms(judge: Judge, index: str, table: SchemaTable) -> tuple[IndexTerm, ...]:
    """Return the terms of an index; () if it contains expressions."""
    listed = 'SELECT name, "desc", coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno'
    found = []
    for name, is_descending, collation in judge.rows(EMPTY, listed, (index,)):
        column = table.column(name) if name is not None else None
        if column is None:
            return ()
        own = collation.upper() == column.collation
        found.append(IndexTerm(name, "" if own else collation, bool(is_descending)))
    return tuple(found)
