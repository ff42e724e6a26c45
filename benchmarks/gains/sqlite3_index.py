"""A table is read from end to end for one row: an index."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.executescript(
    "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);"
)
with db:
    db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{i}",) for i in range(5000)])
    db.executemany(
        "INSERT INTO book (title, author) VALUES (?, ?)", [(f"t{i}", i + 1) for i in range(5000)]
    )
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX book_author ON book (author)")


def titles() -> list[str]:
    found = []
    for number in range(200):
        rows = db.execute("SELECT title FROM book WHERE author = ?", (number + 1,))
        found.append(rows.fetchone()[0])
    return found


run(titles, titles)
