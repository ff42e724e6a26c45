"""Facts that are read from the text of statements."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.sql.clauses import (
    MAX_DEPTH,
    all_comparisons_of,
    clauses_of,
    compared_columns,
    comparisons_of,
    has_list,
    sort_terms,
    tables_by_alias,
    verb_of,
)
from queryprof.sql.operands import functions_in, names_in, operand_column, operand_text
from queryprof.sql.tokens import MAX_CHARACTERS, parameters_in, tokens_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("statement", "verb", "changed"),
    [
        ("SELECT 1", "SELECT", ""),
        ("-- a note\n /* and another */ select 1", "SELECT", ""),
        ("WITH a AS (SELECT 1) INSERT OR IGNORE INTO t SELECT * FROM a", "INSERT", "t"),
        ('with a as (select 1) UPDATE "My T" SET b = 1', "UPDATE", "my t"),
        ("WITH a AS (SELECT updated, deleted FROM t) SELECT * FROM a", "SELECT", ""),
        ("WITH a AS (DELETE", "WITH", ""),
        ("INSERT OR REPLACE INTO main.[a ]] VALUES (?)", "INSERT", "a "),
        ("REPLACE INTO `a``b` VALUES (?)", "REPLACE", "a`b"),
        ("UPDATE OR FAIL temp.t SET a = 1", "UPDATE", "t"),
        ("DELETE FROM t", "DELETE", "t"),
        ("DELETE FROM", "DELETE", ""),
        ("BEGIN IMMEDIATE", "BEGIN", ""),
        ("(connect)", "", ""),
        ("", "", ""),
    ],
)
def test_what_a_statement_does(statement: str, verb: str, changed: str) -> None:
    assert verb_of(statement) == verb
    assert clauses_of(statement).changed == changed


@pytest.mark.parametrize(
    ("statement", "has"),
    [
        ("SELECT a FROM t", set()),
        ("SELECT a FROM t WHERE a = ? LIMIT ?", {"chooses", "limits"}),
        ("SELECT a FROM t LIMIT ? OFFSET ?", {"limits", "skips"}),
        ("SELECT a FROM t LIMIT ?, ?", {"limits", "skips"}),
        ("SELECT offset, \"limit\", 'LIMIT 1, 2 WHERE' FROM t -- LIMIT 1, 2", set()),
        ("SELECT a, (SELECT b FROM u WHERE i = a LIMIT 1), 1 FROM t", {"chooses"}),
        ("SELECT a FROM (SELECT b FROM u LIMIT ? OFFSET ?) AS v, w", {"limits", "skips"}),
        ("WITH v AS (SELECT a, b FROM u LIMIT ?) SELECT a, b FROM v, w", {"limits"}),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u GROUP BY b)", {"chooses"}),
        ("SELECT count(*) FROM t GROUP BY a", {"groups", "adds_up"}),
        ("SELECT sum (a) FROM t", {"adds_up"}),
        ("SELECT a FROM t ORDER BY b", {"orders"}),
        ("SELECT row_number() OVER (ORDER BY b) FROM t", set()),
        ("SELECT count, total FROM t", set()),
    ],
)
def test_the_clauses_of_a_statement(statement: str, has: set[str]) -> None:
    clauses = clauses_of(statement)
    names = ("chooses", "groups", "orders", "limits", "skips", "adds_up")
    assert {name for name in names if getattr(clauses, name)} == has


@pytest.mark.parametrize(
    ("where", "compared"),
    [
        ("t.a = ?", [("a", "=", "?", "a")]),
        ("a NOT IN (?, ?) AND NOT b <> c", [("a", "IN", "(?, ?)", "a"), ("b", "<>", "c", "b")]),
        ("lower(t.a) LIKE ?", [("lower(a)", "LIKE", "?", "")]),
        (
            "(a + b) * 2 >= ? OR ? = a || b",
            [("(a + b) * 2", ">=", "?", ""), ("?", "=", "a || b", "")],
        ),
        ("a BETWEEN ? AND ?", [("a", "BETWEEN", "?", "a")]),
        ("CAST(a AS TEXT) = ?", [("CAST(a AS TEXT)", "=", "?", "")]),
        ("d ->> '$.a AND b' IS NOT NULL", [("d ->> '$.a AND b'", "IS", "NULL", "")]),
        ('main.t."A b" = ?', [('"A b"', "=", "?", "a b")]),
        (
            "a = (SELECT max(b) FROM u WHERE c < ?)",
            [("a", "=", "(SELECT max(b) FROM u WHERE c < ?)", "a"), ("c", "<", "?", "c")],
        ),
        ("a LIKE ? ESCAPE '!' AND b = ?", [("a", "LIKE", "?", "a"), ("b", "=", "?", "b")]),
    ],
)
def test_what_is_compared(where: str, compared: list[tuple[str, ...]]) -> None:
    statement = f"SELECT x = y AS z FROM t WHERE {where} ORDER BY v"
    assert [
        (
            operand_text(statement, one.left),
            one.operator,
            operand_text(statement, one.right),
            operand_column(one.left),
        )
        for one in comparisons_of(statement)
    ] == compared


def test_what_is_assigned_is_not_compared() -> None:
    statement = (
        "INSERT INTO t VALUES (?) ON CONFLICT (a) DO UPDATE SET a = ?, b = b + 1 WHERE c = ?"
    )
    assert [operand_column(one.left) for one in comparisons_of(statement)] == ["c"]
    assert [(one.clause, operand_column(one.left)) for one in all_comparisons_of(statement)] == [
        ("SET", "a"),
        ("SET", "b"),
        ("WHERE", "c"),
    ]


def test_names_are_not_those_of_functions_types_and_collations() -> None:
    tokens = tokens_of("coalesce(CAST(t.a AS BIG INT), b COLLATE NOCASE, 'c', NULL, ?1, \"D\")")
    assert names_in(tokens) == ("a", "b", "d")
    assert functions_in(tokens) == ("coalesce",)


def test_what_is_sorted_by_and_other_names_of_tables() -> None:
    statement = (
        "SELECT date(a) FROM t AS x JOIN u y ON 1 GROUP BY date(x.a), b HAVING 1 ORDER BY c DESC,"
        " lower(d) LIMIT 1"
    )
    assert [operand_text(statement, term) for term in sort_terms(statement)] == [
        "date(a)",
        "b",
        "c",
        "lower(d)",
    ]
    assert tables_by_alias(statement).items() >= {"x": "t", "y": "u"}.items()
    assert tables_by_alias("SELECT a FROM t AS x WHERE x.a = ?")["x"] == "t"


def test_what_is_compared_under_a_table_s_name() -> None:
    statement = (
        "SELECT 1 FROM main.a AS x JOIN b ON b.k = x.K AND lower(x.l) = b.m WHERE x.n > 1 AND o = 2"
    )
    assert compared_columns(statement, "X") == ("k", "n")
    assert compared_columns(statement, "b") == ("k", "m")
    assert compared_columns(statement, "a") == ()


SQLISH = st.text(st.sampled_from(list("abS 1'\"`[]()?:@$.,;-/*\n=<>é\x00")), max_size=60)


@given(SQLISH | st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    tokens = tokens_of(text)
    assert all(text[one.start : one.start + len(one.text)] == one.text for one in tokens)
    ends = [one.start + len(one.text) for one in tokens]
    assert ends == sorted(ends)
    verb_of(text), clauses_of(text), list(sort_terms(text)), tables_by_alias(text)
    for one in all_comparisons_of(text):
        operand_text(text, one.left), names_in(one.right), operand_column(one.left)


NO_PARAMETERS = ["'?'", '"?"', "`:a`", "[@b]", "x'00'", "/*?*/1", "1--?\n", "1.5e3", "'it''s ?'"]


@pytest.mark.parametrize("kinds", [["?"], ["?1", "?2", "?3"], [":a", "@b", "$c", ":1"]], ids=str)
@given(data=st.data())
@pytest.mark.repeats
def test_parameters_are_those_that_sqlite_finds(kinds: list[str], data: st.DataObject) -> None:
    """SQLite refuses a statement with another number of values."""
    values = data.draw(st.lists(st.sampled_from(kinds + NO_PARAMETERS), min_size=1, max_size=9))
    statement = f"SELECT {', '.join(values)} FROM t"
    found = [statement[start:end] for start, end in parameters_in(statement)]
    assert found == [value for value in values if value in kinds]
    names = {one[1:]: 1 for one in found}
    numbers = max([int(one[1:]) for one in found if one[1:].isdigit()], default=len(found))
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute('CREATE TABLE t ("?", ":a", "@b")')
        db.execute(statement, names if ":a" in kinds else [1] * numbers)


def test_a_long_statement_has_all_its_parameters() -> None:
    statement = f"SELECT {', '.join(['?'] * MAX_CHARACTERS)}"
    assert len(parameters_in(statement)) == MAX_CHARACTERS
    assert tokens_of(statement)[-1].start < MAX_CHARACTERS


LONG = {
    "nested comparisons": (
        "SELECT a FROM t WHERE a" + " AND (a = ".join([""] * 1400) + "1" + ")" * 1400
    ),
    "unclosed": "SELECT a FROM t WHERE a AND " + "=(" * 4900,
    "a chain": "SELECT a FROM t WHERE " + "a = " * 2400 + "a",
    "lists": "SELECT a FROM t WHERE a IN (" + ", ".join("?" * 3000) + ")",
    "unclosed terms": "SELECT a FROM t " + "ORDER BY (" * 900,
    "spaces": "SELECT a FROM t WHERE" + " " * 9000 + "a = 1",
    "RETURNING": "INSERT INTO t VALUES (1)" + " RETURNING " * 800 + " ON",
}


@pytest.mark.parametrize("statement", LONG.values(), ids=LONG)
def test_a_long_statement_s_operands_are_of_few_tokens_each(statement: str) -> None:
    """Each token belongs to at most as many comparisons as are searched around it."""
    tokens, compared = tokens_of(statement), all_comparisons_of(statement)
    operands = [operand for one in compared for operand in (one.left, one.right)]
    assert sum(map(len, operands)) <= 2 * (MAX_DEPTH + 1) * len(tokens)
    assert sum(map(len, sort_terms(statement))) <= (MAX_DEPTH + 1) * len(tokens)
    assert sys.getsizeof(compared) + sum(map(sys.getsizeof, compared)) <= 200 * len(tokens) + 200


@pytest.mark.parametrize("depth", [40, 41])
def test_comparisons_are_looked_at_to_a_depth(depth: int) -> None:
    statement = f"SELECT a FROM t WHERE {'(' * depth}a = 1{')' * depth}"
    assert len(comparisons_of(statement)) == (depth == MAX_DEPTH)


@pytest.mark.parametrize(
    ("statement", "is_list"),
    [
        ("SELECT a FROM t WHERE a IN (?)", True),
        ("SELECT a FROM t WHERE a NOT IN (:p0)", True),
        ("SELECT a FROM t WHERE (a, b) IN (VALUES (?, ?))", True),
        ("WITH w AS (VALUES (?, ?)) SELECT a FROM t", True),
        ("UPDATE t SET a = 1 WHERE (a, b) IN (VALUES (?, ?))", True),
        ("INSERT INTO t SELECT a FROM u WHERE a IN (VALUES (?))", True),
        ("INSERT INTO t VALUES (?, ?)", False),
        ("SELECT a FROM t WHERE a IN (?, ?)", False),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u)", False),
        ("SELECT a FROM t WHERE a IN", False),
        ("SELECT a FROM t WHERE a IN (?", False),
        ("SELECT max(?) FROM t", False),
    ],
)
def test_a_list_of_values(statement: str, is_list: bool) -> None:
    assert has_list(statement) == is_list
