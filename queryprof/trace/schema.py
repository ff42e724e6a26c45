"""The trace file's schema as SQL, generated from the tables.

A trace is a SQLite file. Each column name ends with its unit. Times are in nanoseconds, instants in
nanoseconds since 1970 (Unix time). Sums of different traces can be added, so merging is exact.
"""

from __future__ import annotations

from queryprof.trace.declaration import KEY
from queryprof.trace.tables import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.declaration import Column, Table

APPLICATION_ID = 0x51507266
"""The application id in the header of every trace ("QPrf"). It distinguishes traces from other
SQLite files.
"""

SCHEMA_VERSION = 1
"""The version in the header of every trace (user_version). Increase it when the schema changes."""


def create_table_sql(table: Table) -> str:
    """Return the SQL that creates a table, with the meaning of each column as a comment."""
    lines = [("id INTEGER PRIMARY KEY", "")] if table.has_id else []
    is_numbered = not table.has_id and [c.sql_type for c in table.columns if c.role == KEY] == [
        "INTEGER"
    ]
    for column in table.columns:
        is_primary = is_numbered and column.role == KEY
        lines.append((column_sql(column) + " PRIMARY KEY" * is_primary, column.meaning))
    names = ", ".join(table.key)
    if names and not is_numbered:
        lines.append((f"{'UNIQUE' if table.has_id else 'PRIMARY KEY'} ({names})", ""))
    body = [
        f"    {sql}{f'  /* {meaning} */' if meaning else ''}{',' if line < len(lines) else ''}"
        for line, (sql, meaning) in enumerate(lines, 1)
    ]
    ending = ")" if table.has_id or is_numbered else ") WITHOUT ROWID"
    index = f"CREATE INDEX {table.name}_index ON {table.name} ({', '.join(table.index)});"
    return "\n".join(
        [f"-- {table.meaning}", f"CREATE TABLE {table.name} (", *body, f"{ending};"]
        + [index] * bool(table.index)
    )


def column_sql(column: Column) -> str:
    """Return a column definition in SQL."""
    present = "" if column.is_optional else " NOT NULL"
    refers = f" REFERENCES {column.reference} (id)" if column.name.endswith("_id") else ""
    return f"{column.name} {column.sql_type}{present}{refers}"


SCHEMA = "\n".join(create_table_sql(table) for table in TABLES)
