"""Missing or old statistics, and unknown values."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from proof.counted_time import counted, proved
from proof.test_advice import advice_on

import queryprof as api
from queryprof.analysis.report import Report

pytestmark = pytest.mark.once


def test_missing_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ANALYZE, SQLite uses the existing index, and no other one is needed."""
    path = tmp_path / "jobs.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, worker INTEGER)")
    rows = [(i, "done", i % 5000) for i in range(20_000)]
    db.executemany("INSERT INTO job VALUES (?, ?, ?)", rows)
    db.execute("CREATE INDEX job_state ON job (state)")
    db.execute("CREATE INDEX job_worker ON job (worker)")
    db.commit()
    db.close()
    query = "SELECT id FROM job WHERE state = ? AND worker BETWEEN ? AND ?"
    advice = advice_on(
        path,
        monkeypatch,
        lambda db: [db.execute(query, ("done", one, one)).fetchall() for one in range(50)],
    )
    assert [change.sql for change in advice.changes] == ["ANALYZE;"]
    assert advice.changes[0].undo == "DELETE FROM sqlite_stat1;"
    assert advice.proofs[0].is_proved


@pytest.mark.slow
def test_old_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ANALYZE ran when the tables were almost empty: no index is needed. Undoing it restores the
    old statistics.
    """
    path = tmp_path / "files.db"
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE chunk (id INTEGER PRIMARY KEY, path TEXT, kind TEXT);
        CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT);
        CREATE INDEX chunk_path ON chunk (path);
        INSERT INTO chunk VALUES (0, 'a', 'x');
        INSERT INTO file VALUES (0, 'a');
        ANALYZE;
        """)
    chunks = ((f"p{i % 2000}", "x" if i % 50 else "y") for i in range(10_000))
    db.executemany("INSERT INTO chunk (path, kind) VALUES (?, ?)", chunks)
    db.executemany("INSERT INTO file (path) VALUES (?)", ((f"p{i}",) for i in range(500)))
    db.commit()
    db.close()
    query = "SELECT sum(k.id), max(k.kind) FROM file f JOIN chunk k ON k.path = f.path"
    advice = advice_on(path, monkeypatch, lambda db: db.execute(query).fetchall())
    assert [change.sql for change in advice.changes] == ["ANALYZE;"]
    undo = advice.changes[0].undo
    assert undo.startswith("DELETE FROM sqlite_stat1; INSERT INTO sqlite_stat1 VALUES (")
    assert "('chunk', 'chunk_path', '1 1')" in undo
    assert advice.proofs[0].is_proved


def test_values_are_drawn(database: Path) -> None:
    """Values of rows replace unrecorded values, and the output says so."""
    with api.profile() as recording:
        db = sqlite3.connect(database)
        for owner in range(5):
            db.execute(
                "SELECT id, text FROM item WHERE owner = ? AND at < ? ORDER BY id LIMIT ?",
                (owner, 5, 5),
            )
            db.execute("SELECT id FROM item WHERE date(at, ?) = 3", ("-1 day",)).fetchall()
        db.close()
    advice = proved(Report(counted(recording.profile)), str(database))
    (proof,) = [one for one in advice.proofs if "owner" in one.statement]
    assert proof.is_drawn
    assert proof.is_proved
    (unknown,) = advice.not_measured
    assert "--parameters" in unknown.reason
