"""Each row is a transaction: one around the loop."""

import tempfile
from pathlib import Path

from shared.sqlite3_library import library
from shared.timed import run

db = library(10, Path(tempfile.mkdtemp(), "app.db"), isolation_level=None)


def before() -> None:
    for number in range(200):
        db.execute("INSERT INTO author (name) VALUES (?)", (f"new {number}",))


def after() -> None:
    db.execute("BEGIN")
    before()
    db.execute("COMMIT")


run(before, after)
