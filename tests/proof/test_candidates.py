"""Which indexes are tried."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from queryprof.proof.accesses import EQUAL, Access, Comparison
from queryprof.proof.candidates import candidates_of
from queryprof.proof.judging import BEFORE, Judge
from queryprof.proof.schema import schema_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("existing", "tried", "not_tried"),
    [
        ("a", {("a", "b"), ("b",)}, {("a",)}),  # a wider one helps
        ("a, b", {("b", "a"), ("b",)}, {("a",), ("a", "b")}),  # what it begins with is there
    ],
)
def test_what_an_index_begins_with_is_not_tried(
    tmp_path: Path, existing: str, tried: set[tuple[str, ...]], not_tried: set[tuple[str, ...]]
) -> None:
    path = tmp_path / "tables.db"
    db = sqlite3.connect(path)
    db.executescript(f"CREATE TABLE t (a, b, c); CREATE INDEX i ON t ({existing})")
    db.executemany("INSERT INTO t VALUES (?, 1, 1)", ((i,) for i in range(9)))
    db.commit()
    db.close()
    with Judge() as judge:
        judge.take(f"{path.as_uri()}?mode=ro", BEFORE)
        schema = schema_of(judge)
    compared = tuple(Comparison(column, min(EQUAL), "BINARY", 1) for column in ("a", "b"))
    access = Access("t", compared, (), None)
    sql = "SELECT * FROM t WHERE a = 1 AND b = 1"
    found = {
        tuple(term.column for term in one.terms) for one in candidates_of(sql, [access], schema)
    }
    assert tried <= found
    assert not found & not_tried
