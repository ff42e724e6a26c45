"""Indexes of joined tables whose columns have the same name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.once

SCHEMA = """
CREATE TABLE user (id INTEGER PRIMARY KEY, email TEXT, active INTEGER);
CREATE TABLE address (id INTEGER PRIMARY KEY, user INTEGER, email TEXT);
CREATE INDEX user_email ON user (email);
CREATE INDEX address_user ON address (user);
CREATE INDEX address_email ON address (email);
"""


@pytest.mark.parametrize(
    ("column", "index"), [("address.email", "address_email"), ("user.email", "user_email")]
)
def test_the_index_of_the_compared_column_is_named(tmp_path: Path, column: str, index: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.executescript(SCHEMA)
        people = [(n, f"p{n}@x.org", 1) for n in range(5_000)]
        db.executemany("INSERT INTO user VALUES (?, ?, ?)", people)
        db.executemany("INSERT INTO address (user, email) VALUES (?, ?)", [p[:2] for p in people])
    statement = (
        "SELECT address.id FROM address CROSS JOIN user ON user.id = address.user"
        if column == "user.email"
        else "SELECT address.id FROM user CROSS JOIN address ON user.id = address.user"
    )
    with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        for number in range(40):
            sql = f"{statement} WHERE user.active = 1 AND {column} LIKE ?"
            db.execute(sql, (f"P{number}@x.org",)).fetchall()
    (found,) = (
        one for one in findings_of(Report(recording.profile), ()) if "LIKE" in one.statement
    )
    assert found.category == "index_defeated"
    assert f"has the index {index} (email)" in found.evidence[1]
