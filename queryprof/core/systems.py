"""Database systems that receive statements."""

from __future__ import annotations

SYSTEMS = ("", "sqlite", "postgresql", "duckdb", "other_sql", "mysql", "oracle.db")
"""The names of database systems, indexed by the core's qp_system (sql/words.h). "" stands for text
that is not SQL.
"""
