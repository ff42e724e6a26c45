"""Values are in the text of a join: parameters."""

import sqlite3

from shared.timed import run

JOIN = (
    "SELECT a.name, b.name, c.name FROM t a JOIN t b ON b.id = a.other JOIN t c ON c.id = b.other"
)

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, other INTEGER)")
rows = [(f"a{number}", number + 1) for number in range(1000)]
db.executemany("INSERT INTO t (name, other) VALUES (?, ?)", rows)


def before() -> None:
    for number in range(1000):
        db.execute(f"{JOIN} WHERE a.id = {number + 1}").fetchone()


def after() -> None:
    for number in range(1000):
        db.execute(f"{JOIN} WHERE a.id = ?", (number + 1,)).fetchone()


run(before, after)
