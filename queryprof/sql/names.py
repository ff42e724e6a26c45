"""Names of tables and columns in SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote a name for SQL. The name may contain any characters."""
    return '"' + name.replace('"', '""') + '"'
