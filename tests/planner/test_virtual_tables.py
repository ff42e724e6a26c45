"""Statements on full-text tables are planned on the empty copy of the schema."""

from __future__ import annotations

from queryprof.model.schema import Schema
from queryprof.planner.planner import SchemaPlanner


def test_a_full_text_table_is_planned() -> None:
    created = ("CREATE VIRTUAL TABLE words USING fts5 (title, text)",)
    scan, search = "SELECT title FROM words WHERE text LIKE ?", "SELECT title FROM words(?)"
    schemas = {"app.db": Schema("app.db", (), created)}
    with SchemaPlanner(schemas, dict.fromkeys((scan, search), "app.db"), ()) as planner:
        plans = [
            one.plan[0]
            for one in (planner.index_help(scan, ()), planner.index_help(search, ()))
            if one
        ]
    assert plans[0].endswith("VIRTUAL TABLE INDEX 0:")
    assert not plans[1].endswith("VIRTUAL TABLE INDEX 0:")
