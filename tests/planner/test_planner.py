"""Indexes that SQLite's planner would use for a statement."""

from __future__ import annotations

import sqlite3

import pytest

from queryprof.analysis.plans import normalize_plan
from queryprof.model import Schema
from queryprof.planner.planner import SchemaPlanner, schema_statements

pytestmark = pytest.mark.once

TABLES = (
    (
        "CREATE TABLE item(id INTEGER PRIMARY KEY, owner INTEGER, kind TEXT, ts INTEGER, state"
        ' TEXT, "order" TEXT, name TEXT); CREATE TABLE owner(id INTEGER PRIMARY KEY, city TEXT);'
        " CREATE INDEX item_ts ON item (ts)"
    ),
    "CREATE TABLE invoices(id INTEGER NOT NULL, amount INTEGER DEFAULT ?, PRIMARY KEY(id))",
    "CREATE TABLE payments(id INTEGER PRIMARY KEY, reference VARCHAR(?), cents DECIMAL(?, ?))",
    "CREATE VIEW open_item AS SELECT kind AS what, id FROM item WHERE state = ?",
)
"""The tables of a recording, without values."""

SERVED = {
    "SELECT id FROM item WHERE kind = ?": "item (kind)",
    "SELECT id FROM item WHERE kind IN (?, ?)": "item (kind)",
    "SELECT i.id FROM item i JOIN owner o ON o.id = i.owner WHERE i.kind = ? AND o.city = ?": (
        "item (kind)"
    ),
    "SELECT id FROM item WHERE kind = ? OR owner = ?": "item (kind), item (owner)",
    "SELECT id FROM item ORDER BY kind DESC LIMIT ?": "item (kind)",
    "SELECT id, kind FROM item WHERE owner = ? ORDER BY state DESC LIMIT ?": "item (owner, state)",
    "SELECT * FROM item WHERE owner = ? ORDER BY kind, state DESC LIMIT ?": (
        "item (owner, kind, state DESC)"
    ),
    "SELECT * FROM item WHERE owner = ? AND state > ? AND kind = ?": "item (owner, kind, state)",
    "SELECT id FROM item WHERE state = ? AND kind = ? AND owner = ? ORDER BY name DESC LIMIT ?": (
        "item (state, kind, owner, name)"
    ),
    "SELECT id FROM item WHERE ts = ? AND owner = ?": "item (ts, owner)",
    "SELECT id FROM item WHERE owner = :owner AND kind > :from": "item (owner, kind)",
    'SELECT id FROM item WHERE "order" = ?': 'item ("order")',
    "SELECT id FROM open_item WHERE what = ?": "item (state, kind)",
    "SELECT ours(kind) FROM item AS a WHERE a.owner = ?": "item (owner)",
    "UPDATE item SET state = ? WHERE kind = ?": "item (kind)",
    "DELETE FROM item WHERE kind = ?": "item (kind)",
    "SELECT id FROM item WHERE lower(kind) = ?": "item (lower(kind))",
    "SELECT i.id FROM item i JOIN owner o ON o.id = i.owner WHERE upper(o.city) = ?": (
        "owner (upper(city)), item (owner)"
    ),
    "SELECT id FROM item WHERE kind = ? COLLATE NOCASE": "item (kind COLLATE NOCASE)",
    "SELECT id FROM item WHERE owner = ? ORDER BY name COLLATE NOCASE LIMIT ?": (
        "item (owner, name COLLATE NOCASE)"
    ),
    "SELECT id FROM item WHERE owner = ? AND name > ? COLLATE NOCASE": (
        "item (owner, name COLLATE NOCASE)"
    ),
    "SELECT o.city, (SELECT count(*) FROM item i WHERE i.owner = o.id) FROM owner o": (
        "item (owner)"
    ),
    "SELECT id FROM item WHERE id = ?": "",
    "SELECT id FROM item": "",
    "SELECT id FROM item WHERE ts = ?": "",
    "SELECT id FROM item WHERE owner + ? = ?": "",
    "SELECT id FROM item WHERE kind LIKE ?": "item (kind COLLATE NOCASE)",
    "SELECT id FROM item WHERE kind GLOB ?": "item (kind)",
    "SELECT max(kind) FROM item": "item (kind)",
    "SELECT min(kind) FROM item WHERE owner = ?": "item (owner)",
    "SELECT max(kind), min(owner) FROM item": "",
    "SELECT kind, count(*) FROM item GROUP BY kind": "item (kind)",
    "SELECT p.cents FROM payments p JOIN invoices i ON p.reference = i.id WHERE i.id = ?": "",
}


COVERING = {
    "SELECT kind, count(*) FROM item GROUP BY kind": (True, ""),
    "SELECT count(*) FROM item WHERE kind = ?": (True, ""),
    "SELECT kind, max(ts) FROM item GROUP BY kind": (False, "item (kind, ts)"),
    "SELECT DISTINCT kind, state FROM item": (True, ""),
    "SELECT kind, sum(ts) FROM item GROUP BY owner, kind": (False, "item (kind, owner, ts)"),
    "SELECT max(name) FROM item WHERE kind = ?": (False, "item (kind, name)"),
    "WITH g AS (SELECT kind, max(ts) AS m FROM item GROUP BY kind) SELECT count(*) FROM g WHERE m > ?": (
        False,
        "item (kind, ts)",
    ),
    "SELECT * FROM item WHERE kind = ?": (False, ""),
    "SELECT sum(ts) FROM item WHERE lower(kind) = ?": (False, ""),
    "SELECT i.kind, count(*) FROM item i JOIN owner o ON o.id = i.owner WHERE o.city = ? GROUP BY i.kind": (
        False,
        "owner (city); CREATE INDEX item_owner_kind ON item (owner, kind)",
    ),
}
"""Whether the chosen index is covering, and the covering index."""


def plan_of(statement: str) -> tuple[str, ...]:
    """Return the plan that the program's SQLite had."""
    db = sqlite3.connect(":memory:")
    db.create_function("ours", 1, lambda value: value)
    for sql in schema_statements(TABLES):
        db.execute(sql)
    names = {"owner": 1, "from": "k"} if ":" in statement else (None,) * statement.count("?")
    depths, lines = {0: -1}, []
    for number, parent, _, detail in db.execute("EXPLAIN QUERY PLAN " + statement, names):
        depths[number] = depths[parent] + 1
        lines.append("  " * depths[number] + detail)
    db.close()
    return normalize_plan("\n".join(lines))


@pytest.mark.parametrize("statement", SERVED)
def test_the_index_is_the_one_that_the_planner_takes(statement: str) -> None:
    """It contains all compared columns, and none that the statement does not need."""
    plan = plan_of(statement)
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (plan,))
    assert served
    on = [one.partition(" ON ")[2] for one in served.code.split(";") if one]
    assert ", ".join(on) == SERVED[statement]


@pytest.mark.parametrize("statement", COVERING)
def test_indexes_may_have_all_that_is_read_of_tables(statement: str) -> None:
    """Compared or grouped columns come first. There is none with six columns or more, or on an
    expression.
    """
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (plan_of(statement),))
    assert served
    on = served.covering.partition(" ON ")[2].removesuffix(";")
    assert (served.covers, on) == COVERING[statement]


def test_the_end_of_an_index_is_found() -> None:
    with SchemaPlanner({}, {}, TABLES) as planner:
        ends = [
            planner.index_help(f"SELECT {what} FROM item{where}", ()).finds_end  # type: ignore[union-attr]
            for what, where in (
                ("max(kind)", ""),
                ("max(kind)", " WHERE owner = ?"),
                ("sum(kind)", ""),
            )
        ]
    assert ends == [True, False, False]


def test_patterns_of_parameters_may_be_served() -> None:
    """The pattern must begin with letters. The statement keeps its own plan, and a column compared
    by = needs no guess.
    """
    with SchemaPlanner({}, {}, TABLES) as planner:
        like = planner.index_help("SELECT id FROM item WHERE kind LIKE ?", (("SCAN item",),))
        equal = planner.index_help("SELECT id FROM item WHERE kind LIKE ? AND owner = ?", ())
    assert like
    assert equal
    assert (like.by_prefix, like.plan) == (True, ("SCAN item",))
    assert (equal.by_prefix, equal.terms) == (False, ("owner",))


def test_a_type_that_no_index_serves_is_reported() -> None:
    statement = (
        "SELECT p.cents FROM payments p JOIN invoices i ON p.reference = i.id WHERE i.id = ?"
    )
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (plan_of(statement),))
    assert served
    assert served.differing == ("payments.reference",)


@pytest.mark.parametrize(
    "statement", ["SELECT id FROM nothing WHERE a = ?", "SELECT FROM", "ATTACH ? AS other", ""]
)
def test_what_is_not_known_is_not_served(statement: str) -> None:
    with SchemaPlanner({}, {}, TABLES) as planner:
        assert planner.index_help(statement, (("SCAN nothing",),)) is None


def test_a_plan_that_differs_from_the_programs_is_reported() -> None:
    """Its schema or its statistics differed, so no index is proposed."""
    statement = "SELECT id FROM item WHERE kind = ?"
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (("SEARCH item USING INDEX item_kind (kind=?)",),))
    assert served
    assert (served.is_other, served.code, served.plan) == (True, "", ("SCAN item",))


def test_the_schema_of_a_file_has_its_statistics() -> None:
    """There is one row per value of `ts`: this index is chosen, and no wider one is better."""
    created = tuple(schema_statements(TABLES))
    schema = Schema("a.db", (), created, (("item", "item_ts", "100000 1"),))
    statement = "SELECT id FROM item WHERE ts = ? AND kind = ?"
    plan = ("SEARCH item USING INDEX item_ts (ts=?)",)
    with SchemaPlanner({"a.db": schema}, {statement: "a.db"}, ()) as planner:
        assert planner.index_help(statement, (plan,))


def test_scripts_are_taken_apart_by_sqlite() -> None:
    script = (
        "CREATE TABLE t(a); CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END; INSERT"
        " INTO t VALUES (?); DROP TABLE t"
    )
    assert [one.split()[0] for one in schema_statements([script])] == ["CREATE", "CREATE", "DROP"]
    assert list(schema_statements(["SELECT ';'", "PRAGMA x; ATTACH 'a' AS b"])) == []


HOSTILE = {
    "rows": (
        "CREATE TABLE u AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a"
        " FROM n"
    ),
    "temporary rows": (
        "CREATE TEMP TABLE u AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n)"
        " SELECT randomblob(100000) AS y FROM n ORDER BY y"
    ),
    "an extension": "CREATE VIEW v AS SELECT load_extension('x') AS a",
    "a file": "CREATE VIRTUAL TABLE w USING csv(filename = '/etc/passwd')",
    "a word": "CREATE VIRTUAL TABLE w USING interrupt_log(x)",
    "semicolons": "CREATE TABLE x (a DEFAULT '" + ";" * 49_000 + "')",
    "an index of that name": "CREATE TABLE u (x); CREATE INDEX queryprof_77 ON u (x)",
    "a long number": f"CREATE TABLE u (x); CREATE INDEX queryprof_{'9' * 5000} ON u (x)",
    "taken names": "CREATE TABLE t_a (x); CREATE TABLE u (x); CREATE INDEX t_a_2 ON u (x)",
}


@pytest.mark.slow
def test_views_of_views_have_an_end() -> None:
    """Each view selects twice from the previous view. The resulting plan of 2^16 steps is not
    parsed.
    """
    views = [
        f"CREATE VIEW v{n} AS SELECT * FROM v{n - 1} UNION ALL SELECT * FROM v{n - 1}"
        for n in range(1, 17)
    ]
    tables = ["CREATE TABLE t (a, b)", "CREATE VIEW v0 AS SELECT * FROM t", *views]
    with SchemaPlanner({}, {}, tables) as planner:
        assert planner.index_help("SELECT b FROM v16 WHERE a = ?", (("SCAN t",),)) is None
    with SchemaPlanner({}, {}, tables[:6]) as planner:
        assert planner.index_help("SELECT b FROM v2 WHERE a = ?", ())


def test_a_table_s_name_may_have_a_line_s_end() -> None:
    """Recorded plans have a space instead."""
    with SchemaPlanner({}, {}, ['CREATE TABLE "t\nx" (a, b)']) as planner:
        served = planner.index_help('SELECT b FROM "t\nx" WHERE a = ?', (("SCAN t x",),))
    assert served
    assert (served.is_other, served.terms) == (False, ("a",))


@pytest.mark.parametrize("what", HOSTILE)
def test_sql_of_a_stranger_makes_tables_in_memory_alone(what: str) -> None:
    """A refused statement leaves the rest of the schema unchanged."""
    texts = [HOSTILE[what]] * (60 if what == "semicolons" else 1)
    with SchemaPlanner({}, {}, ["CREATE TABLE t(a)", *texts]) as planner:
        served = planner.index_help("SELECT a FROM t WHERE a = ?", (("SCAN t",),))
        joined = "SELECT * FROM u, t WHERE u.x = t.a AND t.a = ?"
        planner.index_help(joined, ())
    assert served
    assert served.code == f"CREATE INDEX t_a{'_3' if what == 'taken names' else ''} ON t (a);"


def test_a_function_of_the_program_makes_no_index() -> None:
    statement = "SELECT id FROM item WHERE ours(kind) = ?"
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(statement, (plan_of(statement),))
    assert served
    assert served.code == ""


def test_statistics_mislead_where_another_plan_is_chosen_without_them() -> None:
    created = tuple(schema_statements(TABLES))
    schema = Schema("a.db", (), created, (("item", "item_ts", "1 1"), ("payments", None, "1")))
    join = "SELECT count(*) FROM payments p JOIN item i ON i.ts = p.cents AND i.kind = ?"
    files = {join: "a.db", "SELECT id FROM item WHERE kind = ?": "a.db"}
    with SchemaPlanner({"a.db": schema}, files, ()) as planner:
        assert planner.statistics_mislead(join, (("SCAN i", "SCAN p"),))
        assert not planner.statistics_mislead(
            "SELECT id FROM item WHERE kind = ?", (("SCAN item",),)
        )


def test_the_rows_that_an_index_leaves_are_reported() -> None:
    """The number is known for a range, and for a scan inside another loop."""
    kinds = {
        "SELECT id FROM item WHERE kind = ? AND state > ?": (False, False),
        "SELECT id FROM item WHERE kind > ?": (True, False),
        "SELECT id FROM item WHERE kind BETWEEN ? AND ?": (True, False),
        "SELECT count(*) FROM item a, item b, item c WHERE a.kind = ?": (False, True),
    }
    with SchemaPlanner({}, {}, TABLES) as planner:
        for statement, (by_range, still_scans) in kinds.items():
            served = planner.index_help(statement, (plan_of(statement),))
            assert served
            assert (bool(served.code), served.by_range, served.still_scans) == (
                True,
                by_range,
                still_scans,
            ), statement


def test_a_foreign_key_that_is_looked_after_wants_an_index() -> None:
    """The statement contains no column of the referring table."""
    tables = (
        "CREATE TABLE parent(id INTEGER PRIMARY KEY)",
        (
            "CREATE TABLE child(id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent ON DELETE"
            " CASCADE, v)"
        ),
    )
    statement, plan = (
        "DELETE FROM parent WHERE id = ?",
        "SEARCH parent USING INTEGER PRIMARY KEY (rowid=?)",
    )
    with SchemaPlanner({}, {}, tables) as planner:
        looked_after = planner.index_help(statement, ((plan, "SCAN child"),))
    with SchemaPlanner({}, {}, tables) as planner:
        not_looked_after = planner.index_help(statement, ((plan,),))
    assert looked_after
    assert looked_after.code == "CREATE INDEX child_up ON child (up);"
    assert not_looked_after
    assert not_looked_after.code == ""


def test_columns_of_other_types_that_an_index_would_be_made_for() -> None:
    """If both had the same type, SQLite would build an automatic index."""
    created = (
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, number TEXT, name TEXT)",
        "CREATE INDEX customer_number ON customer (number)",
        "CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_number INTEGER)",
    )
    query = (
        "SELECT name FROM invoice i CROSS JOIN customer c ON c.number = i.customer_number WHERE"
        " i.id > ?"
    )
    plans = (("SEARCH i USING INTEGER PRIMARY KEY (rowid>?)", "SCAN c"),)
    with SchemaPlanner({"a.db": Schema("a.db", (), created)}, {query: "a.db"}, ()) as planner:
        served = planner.index_help(query, plans)
    assert served
    assert (served.is_other, served.code) == (False, "")
    assert "customer.number" in served.differing


def test_a_collation_of_the_other_side_is_no_other_type() -> None:
    created = (
        "CREATE TABLE item (id INTEGER PRIMARY KEY, code TEXT COLLATE NOCASE, price)",
        "CREATE INDEX item_code ON item (code)",
        "CREATE TABLE scan (id INTEGER PRIMARY KEY, code TEXT)",
    )
    query = "SELECT price FROM scan s JOIN item i ON s.code = i.code WHERE s.id = ?"
    plans = (("SEARCH s USING INTEGER PRIMARY KEY (rowid=?)", "SCAN i"),)
    with SchemaPlanner({"a.db": Schema("a.db", (), created)}, {query: "a.db"}, ()) as planner:
        served = planner.index_help(query, plans)
    assert served
    assert (served.differing, served.recollated) == ((), ("item.code",))


def test_literals_beside_named_parameters_are_values_too() -> None:
    created = ("CREATE TABLE song (id INTEGER PRIMARY KEY, artist TEXT)",)
    query = "SELECT id FROM song WHERE artist = :a LIMIT ?"
    with SchemaPlanner({"a.db": Schema("a.db", (), created)}, {query: "a.db"}, ()) as planner:
        served = planner.index_help(query, (("SCAN song",),))
    assert served
    assert "song (artist)" in served.code


def test_a_partial_index_is_used_for_its_value() -> None:
    """The recorded text does not have the value."""
    created = (
        "CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, prio INTEGER, worker INTEGER)",
        "CREATE INDEX open_job ON job (prio) WHERE state = 'open' AND worker IS NOT NULL",
    )
    schema = Schema("a.db", (), created)
    query = "SELECT id FROM job WHERE worker = ? AND state = ? AND prio = ?"
    other = "SELECT id FROM job WHERE state > ? AND prio = ? AND worker = ?"
    plans = (("SEARCH job USING INDEX open_job (prio=?)",),)
    with SchemaPlanner({"a.db": schema}, {query: "a.db", other: "a.db"}, ()) as planner:
        served = planner.index_help(query, plans)
        assert served
        assert (served.is_other, served.plan) == (False, plans[0])
        assert "(prio, worker)" in served.code or "(worker, prio" in served.code
        assert planner.index_help(other, plans) is None


def test_a_trigger_into_a_virtual_table_hides_no_table() -> None:
    created = (
        "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)",
        "CREATE VIRTUAL TABLE words USING fts5 (text)",
        "CREATE TRIGGER indexing AFTER UPDATE ON note BEGIN UPDATE words SET text = new.text; END",
    )
    update, other = "UPDATE note SET text = ?", "UPDATE other SET text = ?"
    schemas = {"app.db": Schema("app.db", (), created)}
    with SchemaPlanner(schemas, dict.fromkeys((update, other), "app.db"), ()) as planner:
        assert [planner.knows_names(statement) for statement in (update, other)] == [True, False]
