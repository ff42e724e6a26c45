"""PostgreSQL's plans: their nodes, how often each runs, and their conditions."""

from __future__ import annotations

from typing import Any

import pytest

from queryprof.servers.postgresql.plans import plan_nodes, split_conjuncts

pytestmark = pytest.mark.once


def scan(**fields: Any) -> dict[str, Any]:
    return {
        "Node Type": "Seq Scan",
        "Relation Name": "t",
        "Schema": "public",
        "Plan Rows": 10,
        "Total Cost": 5.0,
        **fields,
    }


def node(kind: str, *below: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"Node Type": kind, "Plan Rows": 10, "Total Cost": 100.0, "Plans": list(below), **fields}


def inner(**fields: Any) -> dict[str, Any]:
    return scan(**{"Parent Relationship": "Inner", **fields})


OUTER = scan(**{"Parent Relationship": "Outer", "Plan Rows": 40, "Relation Name": "outer"})


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("", ("",)),
        ("(t.a = $1)", ("(t.a = $1)",)),
        ("((t.a = $1) AND (t.b = $2))", ("(t.a = $1)", "(t.b = $2)")),
        ("((t.a = $1) OR (t.b = $2))", ("((t.a = $1) OR (t.b = $2))",)),
        (
            "((t.a = ') AND ('::text) AND ((t.b = $1) OR ((t.c = $2) AND t.d)))",
            ("(t.a = ') AND ('::text)", "((t.b = $1) OR ((t.c = $2) AND t.d))"),
        ),
        ('((t.") AND (" = $1) AND t.e)', ('(t.") AND (" = $1)', "t.e")),
    ],
)
def test_what_a_condition_is_made_of(condition: str, parts: tuple[str, ...]) -> None:
    assert split_conjuncts(condition) == parts


@pytest.mark.parametrize(
    ("top", "loops", "rows", "is_whole"),
    [
        (scan(), 1, 10, True),
        (node("Nested Loop", OUTER, inner()), 40, 10, True),
        (
            node(
                "Nested Loop",
                OUTER,
                node("Materialize", scan(), **{"Parent Relationship": "Inner"}),
            ),
            1,
            10,
            True,
        ),
        (node("Hash Join", OUTER, inner()), 1, 10, True),
        (
            scan(
                **{
                    "Relation Name": "outer",
                    "Plan Rows": 40,
                    "Plans": [scan(**{"Parent Relationship": "SubPlan"})],
                }
            ),
            40,
            10,
            True,
        ),
        (node("Gather", scan(), **{"Workers Planned": 2}), 1, 24, True),
        (node("Limit", scan()), 1, 10, False),
        (node("Limit", node("Sort", scan())), 1, 10, True),
        (scan(**{"Node Type": "Index Scan", "Index Name": "i"}), 1, 10, True),
        (scan(**{"Node Type": "Index Scan", "Index Cond": "(a = $1)"}), 1, 10, False),
        (scan(**{"Node Type": "Bitmap Heap Scan"}), 1, 10, False),
    ],
)
def test_how_often_a_table_is_read(
    top: dict[str, Any], loops: float, rows: float, is_whole: bool
) -> None:
    (found,) = (one for one in plan_nodes(top) if one.table == "public.t")
    assert (found.loops, found.rows, found.reads_whole_table) == (loops, rows, is_whole)
