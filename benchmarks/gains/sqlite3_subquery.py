"""A subquery runs for each row: a grouped join."""

import sqlite3

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE book (id INTEGER PRIMARY KEY, author INTEGER)")
db.executemany("INSERT INTO author (name) VALUES (?)", [(f"a{n}",) for n in range(500)])
db.executemany("INSERT INTO book (author) VALUES (?)", [(n % 500 + 1,) for n in range(2000)])


def before() -> None:
    for _ in range(3):
        db.execute(
            "SELECT name, (SELECT count(*) FROM book WHERE author = a.id) FROM author a"
        ).fetchall()


def after() -> None:
    for _ in range(3):
        db.execute(
            "SELECT name, books FROM author a LEFT JOIN"
            " (SELECT author, count(*) books FROM book GROUP BY author) ON author = a.id"
        ).fetchall()


run(before, after)
