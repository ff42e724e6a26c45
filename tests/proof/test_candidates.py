"""Choose the indexes to try."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from queryprof.planner.judging import BEFORE, Judge
from queryprof.proof.accesses import EQUAL, RANGE, Access, ComparedColumn
from queryprof.proof.candidates import candidate_indexes
from queryprof.proof.schema import read_schema

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("existing", "tried", "not_tried"),
    [
        ("a", {("a", "b"), ("b",)}, {("a",)}),  # a wider one helps
        ("a, b", {("b", "a"), ("b",)}, {("a",), ("a", "b")}),  # both are prefixes
    ],
)
def test_what_an_index_begins_with_is_not_tried(
    tmp_path: Path, existing: str, tried: set[tuple[str, ...]], not_tried: set[tuple[str, ...]]
) -> None:
    found = tried_with(
        tmp_path, existing, [("a", min(EQUAL)), ("b", min(EQUAL))], "a = 1 AND b = 1"
    )
    assert tried <= found
    assert not found & not_tried


def test_an_index_has_each_column_once(tmp_path: Path) -> None:
    """A column may be compared and sorted, or compared twice."""
    compared = [("a", min(EQUAL)), ("b", min(RANGE)), ("b", max(RANGE))]
    where = "a = 1 AND b > 1 AND b IS NOT NULL ORDER BY b"
    found = tried_with(tmp_path, "c", compared, where, (("b", False),))
    assert ("a", "b") in found
    assert not [one for one in found if len(set(one)) < len(one)]


def tried_with(
    tmp_path: Path,
    existing: str,
    compared: list[tuple[str, int]],
    where: str,
    order: tuple[tuple[str, bool], ...] = (),
) -> set[tuple[str, ...]]:
    """Return the columns of the indexes that are tried for a table with one index."""
    path = tmp_path / "tables.db"
    db = sqlite3.connect(path)
    db.executescript(f"CREATE TABLE t (a, b, c); CREATE INDEX i ON t ({existing})")
    db.executemany("INSERT INTO t VALUES (?, 1, 1)", ((i,) for i in range(9)))
    db.commit()
    db.close()
    with Judge() as judge:
        judge.copy_database(f"{path.as_uri()}?mode=ro", BEFORE)
        schema = read_schema(judge)
    comparisons = tuple(ComparedColumn(column, one, "BINARY", 1) for column, one in compared)
    access = Access("t", comparisons, order, None)
    found = candidate_indexes(f"SELECT * FROM t WHERE {where}", [access], schema)
    return {tuple(term.column for term in one.terms) for one in found}
