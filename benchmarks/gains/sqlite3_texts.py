"""Values are in the text: parameters."""

import sqlite3

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{n}",) for n in range(2000)])


def before() -> None:
    for number in range(2000):
        db.execute(f"SELECT name FROM author WHERE id = {number + 1}").fetchone()


def after() -> None:
    for number in range(2000):
        db.execute("SELECT name FROM author WHERE id = ?", (number + 1,)).fetchone()


run(before, after)
