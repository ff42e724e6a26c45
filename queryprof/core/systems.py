"""Database systems that statements are sent to."""

from __future__ import annotations

SYSTEMS = ("", "sqlite", "postgresql", "duckdb", "other_sql", "mysql", "oracle.db")
"""By qp_system of the core (sql/words.h); "": it is no SQL."""
