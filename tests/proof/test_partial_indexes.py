"""Partial indexes that a statement misses by the way it compares."""

from __future__ import annotations

import pytest

from queryprof.model import Schema
from queryprof.proof.planner import Planner

pytestmark = pytest.mark.once

TABLE = "CREATE TABLE task (id INTEGER PRIMARY KEY, done INTEGER, due TEXT, title TEXT)"
INDEX = "CREATE INDEX task_open ON task (due) WHERE done = 0"
SORTED = ("SCAN task", "USE TEMP B-TREE FOR ORDER BY")


@pytest.mark.parametrize(
    ("where", "plan", "is_missed"),
    [
        ("NOT done", SORTED, True),
        ("done IS FALSE", SORTED, True),
        ("done = ?", SORTED, True),
        ("title = ?", SORTED, False),
        ("id < ?", ("SEARCH task USING INTEGER PRIMARY KEY (rowid<?)", SORTED[1]), False),
    ],
)
def test_what_the_planner_would_take(where: str, plan: tuple[str, ...], is_missed: bool) -> None:
    statement = f"SELECT title, done FROM task WHERE {where} ORDER BY due LIMIT ?"
    schema = Schema("app.db", (), (TABLE, INDEX))
    with Planner({"app.db": schema}, {statement: "app.db"}, ()) as planner:
        served = planner.served(statement, (plan,))
    assert served is not None
    assert served.partial == (("task_open", "done = 0") if is_missed else None)
