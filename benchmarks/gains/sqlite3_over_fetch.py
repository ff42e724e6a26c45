"""All rows are sorted for the first: LIMIT and an index."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, at INTEGER)")
db.executemany("INSERT INTO event (at) VALUES (?)", [(n * 7919 % 100_003,) for n in range(20_000)])
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX event_at ON event (at)")


def before() -> None:
    for _ in range(20):
        db.execute("SELECT id, at FROM event ORDER BY at DESC").fetchone()


def after() -> None:
    for _ in range(20):
        db.execute("SELECT id, at FROM event ORDER BY at DESC LIMIT 1").fetchone()


run(before, after)
