"""A page is read behind all pages before it: keyset pagination."""

import sqlite3

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, title TEXT)")
db.executemany("INSERT INTO post (title) VALUES (?)", [(f"title {n}",) for n in range(20_000)])


def before() -> None:
    for page in range(0, 20_000, 200):
        db.execute("SELECT title FROM post ORDER BY id LIMIT 20 OFFSET ?", (page,)).fetchall()


def after() -> None:
    for page in range(0, 20_000, 200):
        db.execute("SELECT title FROM post WHERE id > ? ORDER BY id LIMIT 20", (page,)).fetchall()


run(before, after)
