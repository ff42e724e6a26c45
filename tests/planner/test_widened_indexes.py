"""Indexes of a plan to which columns may be added."""

from __future__ import annotations

import pytest
from planner.test_planner import TABLES, plan_of

from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once


def test_an_index_that_keeps_rows_unique_is_not_replaced() -> None:
    """The index of a constraint cannot be dropped. Other facts about the statement are still
    reported.
    """
    tables = [
        "CREATE TABLE login (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, name TEXT, city TEXT)",
        "CREATE UNIQUE INDEX login_city_name ON login (city, name)",
    ]
    for statement in (
        "SELECT max(name) FROM login WHERE mail = ?",
        "SELECT max(mail) FROM login WHERE city = ?",
    ):
        with SchemaPlanner({}, {}, tables) as planner:
            served = planner.index_help(statement, ())
        assert served
        assert (served.widened, served.is_aggregate) == ("", True)


WIDENED = {
    "SELECT o.city, sum(i.kind) FROM owner o JOIN item i ON i.owner = o.id WHERE i.ts = ?": (
        "item (ts, owner, kind)"
    ),
    "SELECT name FROM item WHERE ts = ?": "item (ts, name)",
    "SELECT * FROM item WHERE ts = ?": "",
    "SELECT ts FROM item WHERE ts = ?": "",
    "SELECT name FROM item": "",
}


@pytest.mark.parametrize("statement", WIDENED)
@pytest.mark.repeats
def test_the_index_of_a_plan_may_have_more(statement: str) -> None:
    """The added columns are looked up in the table, also inside another loop."""
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (plan_of(statement),))
    assert served
    assert served.widened.partition(" ON ")[2].removesuffix(";") == WIDENED[statement]
