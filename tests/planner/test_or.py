"""The indexes of conditions that OR joins: each needs one."""

from __future__ import annotations

import pytest

from queryprof.model import Schema
from queryprof.planner.planner import SchemaPlanner

TABLE = "CREATE TABLE message (id INTEGER PRIMARY KEY, sender TEXT, recipient TEXT, body TEXT)"
SENDER = "CREATE INDEX message_sender ON message (sender);"
RECIPIENT = "CREATE INDEX message_recipient ON message (recipient);"
QUERY = "SELECT body FROM message WHERE sender = ? OR recipient = ?"


@pytest.mark.parametrize("order", ["", " ORDER BY id"])
@pytest.mark.parametrize(
    ("created", "code"), [((SENDER,), RECIPIENT), ((), f"{SENDER} {RECIPIENT}")]
)
def test_each_branch_gets_its_index(created: tuple[str, ...], code: str, order: str) -> None:
    """A sort of the few rows that both find is cheaper than a scan in their order."""
    schema, query = Schema("a.db", (), (TABLE, *created)), QUERY + order
    with SchemaPlanner({"a.db": schema}, {query: "a.db"}, ()) as planner:
        served = planner.index_help(query, (("SCAN message",),))
    assert served
    assert served.code == code
