"""The search builds, measures and removes indexes, and removed indexes leave nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from queryprof.planner.judging import AFTER, BEFORE, Judge
from queryprof.proof.index import Candidate, IndexTerm
from queryprof.proof.index_search import ChangeSearch
from queryprof.proof.schema import read_schema
from queryprof.proof.times import StatementTimes

pytestmark = pytest.mark.once

JOIN = "SELECT * FROM large, small WHERE large.b = small.b"


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    path = tmp_path / "tables.db"
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE large (a, b); CREATE TABLE small (a, b);"
        "CREATE INDEX large_b ON large (b); CREATE INDEX small_b ON small (b);"
    )
    db.executemany("INSERT INTO large VALUES (?, ?)", ((i, i % 7) for i in range(20_000)))
    db.executemany("INSERT INTO small VALUES (?, ?)", ((i, i % 7) for i in range(50)))
    db.commit()
    db.close()
    with Judge() as judge:
        judge.copy_database(f"{path.as_uri()}?mode=ro", BEFORE)
        judge.copy_database(BEFORE, AFTER)
        yield judge


def test_statistics_are_forgotten_whole(judge: Judge) -> None:
    """If only the rows of sqlite_stat1 are deleted, SQLite keeps the size of the table."""
    search = ChangeSearch(judge, read_schema(judge), ())
    fresh = judge.plan(AFTER, JOIN)
    judge.execute(AFTER, "ANALYZE")
    assert judge.plan(AFTER, JOIN) != fresh
    search.forget_statistics()
    assert judge.plan(AFTER, JOIN) == fresh


def test_what_another_begins_with_is_not_made_beside_it(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if each loss without the index is too large."""
    monkeypatch.setattr(StatementTimes, "min_win_ns", lambda _: -1.0)
    search = ChangeSearch(judge, read_schema(judge), ())
    short = Candidate("large", (IndexTerm("a"),))
    long = Candidate("large", (IndexTerm("a"), IndexTerm("b")))
    search.chosen = [short, long]
    for one in (short, long):
        judge.execute(AFTER, one.sql(search.name(one)))
    search._remove_useless()
    assert search.chosen == [long]


def test_what_is_measured(judge: Judge) -> None:
    """The measurement is the work of one execution on each copy, whatever the clock shows. One copy
    has an additional index.
    """
    judge.execute(AFTER, "CREATE INDEX large_a ON large (a)")
    found = judge.measure((BEFORE, AFTER), "SELECT b FROM large WHERE a = ?", (7,), False, 3, 10**9)
    before, after = found[BEFORE], found[AFTER]
    assert before.rows == after.rows == 1
    assert before.digest == after.digest
    assert before.vm_steps is not None
    assert after.vm_steps is not None
    assert before.vm_steps > 20_000
    assert after.vm_steps < 20
    assert (before.page_fetches or 0) > (after.page_fetches or 0) > 0
    assert before.ns > 0 < after.ns
    ten = judge.measure((BEFORE,), "SELECT b FROM large", (), False, 1, 0, most_rows=10)[BEFORE]
    assert ten.rows == 10
