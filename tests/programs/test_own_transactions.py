"""A write in its own transaction is recognized by its locks, not by SQLite's writes or syncs."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.once

WRITES = 1000


def found(path: Path, *pragmas: str, begins: bool) -> list[Finding]:
    """Return the findings about writes to a file. With `begins` they are one transaction."""
    words = random.Random(1)
    with queryprof.profile() as recording:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            for pragma in pragmas:
                db.execute(f"PRAGMA {pragma}").fetchall()
            db.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, word TEXT)")
            db.execute("CREATE INDEX log_word ON log (word)")
            db.execute("BEGIN" if begins else "SELECT 1")
            for _ in range(WRITES):
                db.execute("INSERT INTO log (word) VALUES (?)", (f"word {words.random()}",))
            db.execute("COMMIT" if begins else "SELECT 1")
    return [one for one in findings_of(Report(recording.profile)) if "commit" in one.category]


@pytest.mark.parametrize(
    "pragmas",
    [
        ("synchronous=off",),
        ("synchronous=off", "journal_mode=memory"),
        ("journal_mode=wal", "synchronous=normal"),
    ],
    ids=" ".join,
)
@pytest.mark.repeats
def test_transactions_that_sync_nothing(tmp_path: Path, pragmas: tuple[str, ...]) -> None:
    (one,) = found(tmp_path / "t.db", *pragmas, begins=False)
    assert one.category == "commit_per_write"
    assert one.evidence[0].startswith("1,000 writes, each in its own transaction")


def test_a_helper_that_is_called_in_a_transaction_and_alone(tmp_path: Path) -> None:
    """Only the calls that commit by themselves are counted."""
    with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.isolation_level = None
        db.execute("CREATE TABLE log (word TEXT)")

        def log(word: str) -> None:
            db.execute("INSERT INTO log VALUES (?)", (word,))

        db.execute("BEGIN")
        for number in range(WRITES):
            log(f"in {number}")
        db.execute("COMMIT")
        for number in range(30):
            log(f"alone {number}")
    (one,) = [one for one in findings_of(Report(recording.profile)) if "commit" in one.category]
    assert one.evidence[0] == "1,030 writes, 30 separate transactions (no BEGIN)"


def test_savepoints_that_are_transactions(tmp_path: Path) -> None:
    """Without BEGIN, RELEASE commits. Within a transaction it does not."""
    for begins in (False, True):
        with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "t.db")) as db:
            db.isolation_level = None
            db.execute("CREATE TABLE IF NOT EXISTS log (word TEXT)")
            db.execute("BEGIN" if begins else "SELECT 1")
            for number in range(50):
                db.execute("SAVEPOINT one")
                db.execute("INSERT INTO log VALUES (?)", (number,))
                db.execute("RELEASE one")
            db.execute("COMMIT" if begins else "SELECT 1")
        message = [
            one for one in findings_of(Report(recording.profile)) if "commit" in one.category
        ]
        assert [one.evidence[0] for one in message] == ([] if begins else ["50 writes, 50 commits"])


def test_a_transaction_of_many_writes(tmp_path: Path) -> None:
    """It is a unit of work: the finding says that it may be needed, and is not severe."""
    with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.isolation_level = None
        db.execute("CREATE TABLE orders (word TEXT)")
        db.execute("CREATE TABLE line (word TEXT)")
        for number in range(50):
            db.execute("BEGIN")
            db.execute("INSERT INTO orders VALUES (?)", (number,))
            for line in range(20):
                db.execute("INSERT INTO line VALUES (?)", (line,))
            db.execute("COMMIT")
    (one,) = [one for one in findings_of(Report(recording.profile)) if "commit" in one.category]
    assert one.severity is not Severity.HIGH
    assert "about 21 writes" in one.doubt


def test_a_transaction_that_writes_before_its_end(tmp_path: Path) -> None:
    """Its cache is full, so each INSERT writes pages but is no transaction."""
    assert found(tmp_path / "t.db", "synchronous=off", "cache_size=10", begins=True) == []
