"""Database systems that receive statements."""

from __future__ import annotations

SYSTEMS = ("", "sqlite", "postgresql", "duckdb", "other_sql", "mysql", "oracle.db")
"""By qp_system of the core (sql/words.h); "" if the text is not SQL."""
