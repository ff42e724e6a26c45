"""Partial indexes that a statement misses because of its comparison."""

from __future__ import annotations

import pytest

from queryprof.model import Schema
from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once

TABLE = "CREATE TABLE task (id INTEGER PRIMARY KEY, done INTEGER, due TEXT, title TEXT)"
INDEX = "CREATE INDEX task_open ON task (due) WHERE done = 0"
SORTED = ("SCAN task", "USE TEMP B-TREE FOR ORDER BY")


@pytest.mark.parametrize(
    ("where", "plan", "is_missed", "is_sure"),
    [
        ("NOT done", SORTED, True, True),
        ("done IS FALSE", SORTED, True, True),
        ("done = ?", SORTED, True, False),
        ("done <> ?", SORTED, False, False),
        ("done IS NOT FALSE", SORTED, False, False),
        ("done IN (?, ?)", SORTED, False, False),
        ("done IS NULL", SORTED, False, False),
        ("title = ?", SORTED, False, False),
        ("id < ?", ("SEARCH task USING INTEGER PRIMARY KEY (rowid<?)", SORTED[1]), False, False),
    ],
)
@pytest.mark.repeats
def test_what_the_planner_would_take(
    where: str, plan: tuple[str, ...], is_missed: bool, is_sure: bool
) -> None:
    """An unknown value may be the index's value."""
    statement = f"SELECT title, done FROM task WHERE {where} ORDER BY due LIMIT ?"
    schema = Schema("app.db", (), (TABLE, INDEX))
    with SchemaPlanner({"app.db": schema}, {statement: "app.db"}, ()) as planner:
        served = planner.index_help(statement, (plan,))
    assert served is not None
    assert served.partial == (("task_open", "done = 0", is_sure) if is_missed else None)
