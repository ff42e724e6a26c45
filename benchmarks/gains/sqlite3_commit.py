"""Each row is a transaction: one around the loop."""

import sqlite3
import tempfile
from pathlib import Path

from shared.timed import run

db = sqlite3.connect(Path(tempfile.mkdtemp(), "app.db"), isolation_level=None)
db.executescript(
    "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);"
)
with db:
    db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{i}",) for i in range(10)])
    db.executemany(
        "INSERT INTO book (title, author) VALUES (?, ?)", [(f"t{i}", i + 1) for i in range(10)]
    )


def before() -> None:
    for number in range(200):
        db.execute("INSERT INTO author (name) VALUES (?)", (f"new {number}",))


def after() -> None:
    db.execute("BEGIN")
    before()
    db.execute("COMMIT")


run(before, after)
