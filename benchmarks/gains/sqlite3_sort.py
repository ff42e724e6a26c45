"""Rows are sorted to take the first ten: an index in that order."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, at INTEGER, text TEXT)")
rows = [(n % 50, n * 7919 % 100_003, f"text {n}") for n in range(50_000)]
db.executemany("INSERT INTO event (kind, at, text) VALUES (?, ?, ?)", rows)
db.execute("CREATE INDEX event_kind ON event (kind)")
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX event_kind_at ON event (kind, at)")


def latest() -> None:
    for kind in range(50):
        db.execute(
            "SELECT text FROM event WHERE kind = ? ORDER BY at DESC LIMIT 10", (kind,)
        ).fetchall()


run(latest, latest)
