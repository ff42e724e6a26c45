"""A proof uses the program's settings: foreign keys and patterns. Unknown values are not measured,
and the output says so.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from proof.counted_time import counted, proved

import queryprof as api
from queryprof.analysis.report import Report
from queryprof.model.advice import Advice, NotMeasured, Proof
from queryprof.report.text.advice import saving_summary

pytestmark = pytest.mark.once


@pytest.mark.parametrize("ends", ["rollback", "commit"])
@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.repeats
def test_foreign_keys_are_looked_after_as_by_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool, ends: str
) -> None:
    """Without foreign keys no row is read for a deleted row, and an index saves nothing. If the
    recorded rows are gone, others replace them.
    """
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY)")
        db.execute(
            "CREATE TABLE sale (id INTEGER PRIMARY KEY,"
            " buyer INTEGER REFERENCES buyer ON DELETE CASCADE)"
        )
        db.executemany("INSERT INTO buyer VALUES (?)", [(n,) for n in range(2000)])
        db.executemany("INSERT INTO sale VALUES (?, ?)", [(n, n % 2000) for n in range(20_000)])
        db.commit()
    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA foreign_keys = {'ON' if is_on else 'OFF'}")
        for number in range(20):
            db.execute("DELETE FROM buyer WHERE id = ?", (number,))
        getattr(db, ends)()
    advice = proved(Report(counted(recording.profile)), str(path))
    codes = [change.sql for change in advice.changes]
    assert codes == (["CREATE INDEX sale_buyer_idx ON sale (buyer);"] if is_on else [])


def test_what_is_changed_already_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice from the plan stays."""
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, code TEXT)")
        db.executemany("INSERT INTO item (code) VALUES (?)", [(f"c{n}",) for n in range(5000)])
        db.commit()
    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for number in range(20):
            db.execute("DELETE FROM item WHERE code GLOB ?", (f"c{number}",))
        db.commit()
    advice = proved(Report(counted(recording.profile)), str(path))
    (one,) = advice.not_measured
    assert one.reason == "its changes were already made: use a copy from before the run"


def test_patterns_are_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, code TEXT)")
        db.executemany("INSERT INTO item (code) VALUES (?)", [(f"c{n}",) for n in range(5000)])
        db.commit()
    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for number in range(20):
            db.execute("SELECT id FROM item WHERE code GLOB ?", (f"*{number}x",)).fetchall()
    advice = proved(Report(counted(recording.profile)), str(path))
    (one,) = advice.not_measured
    assert one.reason == "the patterns are unknown: record with --parameters"
    assert "Neither a single index nor ANALYZE" not in saving_summary(advice)


@pytest.mark.parametrize(
    ("unknown_ns", "is_complete", "is_nothing"),
    [(200, True, True), (201, True, False), (0, False, False)],
)
def test_nothing_to_change_refers_to_measured_statements(
    unknown_ns: int, is_complete: bool, is_nothing: bool
) -> None:
    """A fifth of the time may be unknown."""
    none = Advice("a.db", (), (), (), (), (), "3", "", 1, is_complete, 1.0)
    proof = Proof.__new__(Proof)
    object.__setattr__(proof, "recorded_ns", 800)
    unknown = (NotMeasured("SELECT 1", unknown_ns, "why"),)
    advice = replace(none, proofs=(proof,), not_measured=unknown)
    assert ("Neither a single index nor ANALYZE" in saving_summary(advice)) == is_nothing
