"""A database of authors and books, as many of each."""

import sqlite3
from pathlib import Path


def library(
    size: int, file: str | Path = ":memory:", isolation_level: str | None = ""
) -> sqlite3.Connection:
    """A connection to it."""
    db = sqlite3.connect(file, isolation_level=isolation_level)
    db.executescript(
        "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);"
    )
    with db:
        authors = [(f"a{number}",) for number in range(size)]
        books = [(f"t{number}", number + 1) for number in range(size)]
        db.executemany("INSERT INTO author (name) VALUES (?)", authors)
        db.executemany("INSERT INTO book (title, author) VALUES (?, ?)", books)
    return db
