"""The list of applied migrations is not compared: each migration adds a row to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run

pytestmark = pytest.mark.once

PROGRAM = """
import sqlite3

connection = sqlite3.connect("app.db")
connection.execute("SELECT id, name FROM {table}").fetchall()
connection.execute("SELECT 1").fetchall()
"""


@pytest.mark.parametrize(("table", "status"), [("django_migrations", 0), ("orders", 1)])
def test_a_row_more_in_the_list_of_migrations_is_no_regression(
    queryprof: Run, script: Callable[..., Path], table: str, status: int
) -> None:
    """The migration that creates a proposed index must not fail the comparison."""
    program = str(script(PROGRAM.format(table=table)))
    with closing(sqlite3.connect("app.db", isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name)")
        for side in ("before.qprof", "after.qprof"):
            connection.execute(f"INSERT INTO {table} (name) VALUES ('initial')")
            queryprof("run", "--no-report", "-o", side, program)
    result = queryprof("compare", "before.qprof", "after.qprof")
    assert result.returncode == status, result.stdout
    assert (table in result.stdout) is bool(status)
