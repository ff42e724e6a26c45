"""A connection for each query: keep one."""

import sqlite3
import tempfile
from pathlib import Path

from shared.timed import run

path = str(Path(tempfile.mkdtemp(), "app.db"))
kept = sqlite3.connect(path)
for table in range(30):
    kept.execute(f"CREATE TABLE t{table} (id INTEGER PRIMARY KEY, name TEXT, at INTEGER)")
kept.executemany("INSERT INTO t0 (name) VALUES (?)", [(f"a{n}",) for n in range(500)])
kept.commit()


def before() -> None:
    for number in range(500):
        db = sqlite3.connect(path)
        db.execute("SELECT name FROM t0 WHERE id = ?", (number + 1,)).fetchone()
        db.close()


def after() -> None:
    for number in range(500):
        kept.execute("SELECT name FROM t0 WHERE id = ?", (number + 1,)).fetchone()


run(before, after)
