"""Each read takes the lock for itself: one transaction."""

import sqlite3
import tempfile
from pathlib import Path

from shared.timed import run

path = str(Path(tempfile.mkdtemp(), "app.db"))
db = sqlite3.connect(path)
db.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{n}",) for n in range(2000)])
db.commit()
names = {}


def before() -> None:
    for number in range(2000):
        row = db.execute("SELECT name FROM author WHERE id = ?", (number + 1,)).fetchone()
        names[number] = row[0]


def after() -> None:
    db.execute("BEGIN")
    before()
    db.execute("COMMIT")


run(before, after)
