"""The SQLite that ran a statement also plans it."""

from __future__ import annotations

import sqlite3

import pytest

from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once

EXISTS = "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.x > ?)"
PAIR = (
    "CREATE TABLE a (id INTEGER PRIMARY KEY, g)",
    "CREATE TABLE b (id INTEGER PRIMARY KEY, g, x)",
)


@pytest.mark.parametrize("of_apsw", [True, False])
def test_the_library_that_ran_a_statement_plans_it(of_apsw: bool) -> None:
    """If it is missing, the finding has the version that planned. Newer versions turn EXISTS into a
    join.
    """
    apsw = pytest.importorskip("apsw")
    version = apsw.sqlite_lib_version() if of_apsw else "3.99.0"
    if apsw.sqlite_lib_version() == sqlite3.sqlite_version:
        pytest.skip("both have one SQLite")
    with SchemaPlanner({}, {}, PAIR, {version}) as planner:
        served = planner.index_help(EXISTS, ())
    assert served is not None
    has_planned = "" if of_apsw else sqlite3.sqlite_version
    assert served.other_version == has_planned
    own = apsw.Connection(":memory:") if of_apsw else sqlite3.connect(":memory:")
    for sql in PAIR:
        own.execute(sql)
    rows = list(own.execute(f"EXPLAIN QUERY PLAN {EXISTS}", (1,)))
    words = " ".join(detail for *_, detail in rows).replace(" EXISTS", "").split()
    assert set(" ".join(served.plan).split()) - set(words) <= {"SUBQUERY"}
    own.close()
