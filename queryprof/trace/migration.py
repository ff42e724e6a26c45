"""How a trace of an older version becomes one of the present version."""

from __future__ import annotations

from queryprof.trace.schema import create, declared
from queryprof.trace.tables import TABLES


def migration(version: int) -> str:
    """The SQL that makes a trace of the version before one of this version."""
    added = [
        f"ALTER TABLE {table.name} ADD COLUMN {declared(column)}"
        f"{'' if column.is_optional else ' DEFAULT 0'};"
        for table in TABLES
        for column in table.columns
        if column.since == version
    ]
    created = [create(table, version) for table in TABLES if table.since == version]
    return "\n".join([*created, *added])
