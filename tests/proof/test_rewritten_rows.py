"""Rewritten statements return the same rows as the originals for all values, even untried ones."""

from __future__ import annotations

import functools
import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from queryprof.planner.judging import BEFORE, Judge
from queryprof.proof.joining import _JoinedQuery
from queryprof.proof.parameters import Parameters
from queryprof.proof.rewrites import _is_unique
from queryprof.proof.rewriting import comparison_rewritings, plain_select
from queryprof.proof.schema import read_schema
from queryprof.proof.workload import Sample

pytestmark = pytest.mark.once

CONTENTS: dict[str, tuple[object, ...]] = {
    "texts": ("a", "A", "a ", "5", "05", "", None),
    "whole numbers": (5, 0, -1, None),
    "numbers": (5, 0.1 + 0.2, 5.5, 10**17, None),
    "texts and a number": ("a", "5", 5),
    "texts and a BLOB": ("a", b"A", b"a"),
    "a text among numbers": (5, "word9", "5x"),
}
KINDS = (
    "TEXT",
    "TEXT COLLATE NOCASE",
    "TEXT COLLATE RTRIM",
    "INTEGER",
    "REAL",
    "NUMERIC",
    "BLOB",
    "",
)
COMPARED = (
    "lower(one.c) = ?",
    "upper(one.c) = ?",
    "CAST(one.c AS TEXT) = ?",
    "substr(one.c, 1, 1) = ?",
    "one.c = ?",
    "one.c = two.c AND ? IS NOT one.c",
)
VALUES = ("a", "A", "a ", "5", 5, "05", 0, 0.3, "0.3", b"A", "word9", "", None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.repeats
def test_where_the_comparison_stays_all_rows_do(
    tmp_path: Path, kind: str, content: tuple[object, ...]
) -> None:
    """This holds for columns of any type, content and collation, and for any value."""
    path = tmp_path / "any.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE one (id INTEGER PRIMARY KEY, c {kind})")
        db.execute("CREATE INDEX one_c ON one (c COLLATE NOCASE)")
        db.executemany("INSERT INTO one (c) VALUES (?)", [(each,) for each in content])
        for number, other in enumerate(KINDS):
            db.execute(f"CREATE TABLE two_{number} (c {other})")
            db.execute(f"INSERT INTO two_{number} SELECT c FROM one")
        db.commit()
        with Judge() as judge:
            judge.copy_database(f"{path.as_uri()}?mode=ro", BEFORE)
            schema, rows = read_schema(judge), functools.partial(judge.rows, BEFORE)
            for sql in statements():
                for other in comparison_rewritings(
                    [Sample(sql, ("a",), is_drawn=False)], schema, rows
                ):
                    if other.sql.count(" = ") > 1:  # next to the old comparison, not instead of it
                        has_equal_rows(db, sql, other.sql)


def statements() -> Iterator[str]:
    for number, compared in itertools.product(range(len(KINDS)), COMPARED):
        if "two" in compared:
            yield f"SELECT one.id, one.c FROM one, two_{number} AS two WHERE {compared} ORDER BY 1"
        elif not number:
            yield f"SELECT one.id, one.c FROM one WHERE {compared} ORDER BY 1"


def has_equal_rows(db: sqlite3.Connection, sql: str, other: str) -> None:
    for value in VALUES:
        found = db.execute(other, (value,) * other.count("?")).fetchall()
        assert found == db.execute(sql, (value,)).fetchall(), (other, value)


@pytest.mark.parametrize(
    ("inner", "is_joined"),
    [
        ("SELECT id, title FROM book WHERE author_id = ?", True),
        ("SELECT id, title FROM book WHERE author_id = ? LIMIT 3", False),
        ("SELECT id, title FROM book WHERE author_id = ? LIMIT 3 OFFSET 0", False),
        ("SELECT name FROM author WHERE id = ? LIMIT 21", True),
        ("SELECT name FROM author WHERE id = ? LIMIT 1 OFFSET 0", True),
        ("SELECT name FROM author WHERE id = ? LIMIT 1 OFFSET 1", False),
        ("SELECT name FROM author WHERE id = ? LIMIT 0", False),
        ("SELECT name FROM author WHERE id = ? OR name = 'x' LIMIT 1", False),
        ("SELECT name FROM author WHERE (id = ? AND name > '') LIMIT 1", True),
        ("SELECT id FROM tag WHERE word = ? LIMIT 1", True),
        ("SELECT id FROM tag WHERE other = ? LIMIT 1", False),
        ("SELECT id FROM tag WHERE folded = ? LIMIT 1", False),
        ("SELECT id FROM tag WHERE pair = ? LIMIT 1", False),
    ],
)
@pytest.mark.repeats
def test_a_join_finds_no_rows_that_a_limit_leaves_out(
    tmp_path: Path, inner: str, is_joined: bool
) -> None:
    """A join is possible if there is at most one such row."""
    path = tmp_path / "joined.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE author (id INTEGER PRIMARY KEY, name); CREATE TABLE book (id INTEGER"
            " PRIMARY KEY, author_id, title); CREATE TABLE tag (id INTEGER PRIMARY KEY, word"
            " UNIQUE, other, folded COLLATE NOCASE, pair, UNIQUE (pair, id)); CREATE UNIQUE INDEX u"
            " ON tag (other) WHERE other > 1;CREATE UNIQUE INDEX f ON tag (folded COLLATE BINARY)"
        )
    select = plain_select(Parameters().number_parameters(inner, (1,)))
    assert select
    with Judge() as judge:
        judge.copy_database(f"{path.as_uri()}?mode=ro", BEFORE)
        search = SimpleNamespace(judge=judge, schema=read_schema(judge))
        joined = _JoinedQuery(["id"], 0, 0, lambda table, column: _is_unique(search, table, column))  # type: ignore[arg-type]
        text = joined.text(Sample("SELECT id FROM author", (), False), Sample(inner, (1,), False))
    assert (text is not None) == is_joined
