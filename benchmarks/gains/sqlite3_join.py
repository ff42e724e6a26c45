"""A query for each row of another one: a join."""

import sqlite3

from shared.timed import run

db = sqlite3.connect(":memory:")
db.executescript(
    "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);"
)
with db:
    db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{i}",) for i in range(2000)])
    db.executemany(
        "INSERT INTO book (title, author) VALUES (?, ?)", [(f"t{i}", i + 1) for i in range(2000)]
    )


def before() -> list[str]:
    names = []
    for (number,) in db.execute("SELECT author FROM book").fetchall():
        names.append(db.execute("SELECT name FROM author WHERE id = ?", (number,)).fetchone()[0])
    return names


def after() -> list[str]:
    rows = db.execute("SELECT name FROM book JOIN author ON author.id = author")
    return [name for (name,) in rows]


run(before, after)
