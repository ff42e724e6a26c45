"""Databases without indexes."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

ROWS = 12_000
TABLES = """
    CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, kind TEXT, name TEXT, at INTEGER, price REAL,
                       code TEXT COLLATE NOCASE, data TEXT, text TEXT);
    CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    CREATE TABLE small (id INTEGER PRIMARY KEY, a INTEGER);
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, draw = tmp_path_factory.mktemp("advice") / "items.db", random.Random(1)
    db = sqlite3.connect(path)
    db.executescript(TABLES)
    db.executemany(
        "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                i,
                draw.randrange(900),
                f"kind {i % 7}",
                f"Name {draw.randrange(ROWS)}",
                draw.randrange(10**6),
                draw.random(),
                f"Code{i}",
                f'{{"city": "city {i % 400}"}}',
                "words and more words " * 8,
            )
            for i in range(ROWS)
        ),
    )
    db.executemany(
        "INSERT INTO owner VALUES (?, ?, ?)", ((i, f"o{i}", f"city {i % 90}") for i in range(900))
    )
    db.executemany("INSERT INTO small VALUES (?, ?)", ((i, i) for i in range(20)))
    db.commit()
    db.close()
    return path


@pytest.fixture
def database(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "items.db"))


BOOKS = 12_000


BOOK_TABLES = """
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT, created TEXT, code TEXT);
    CREATE TABLE loan (id INTEGER PRIMARY KEY, code INTEGER);
    CREATE INDEX book_author ON book (author_id);
    CREATE INDEX book_created ON book (created);
    CREATE INDEX book_title ON book (title COLLATE NOCASE);
    CREATE INDEX book_code ON book (code);
"""


@pytest.fixture
def books(tmp_path: Path) -> Path:
    db = sqlite3.connect(tmp_path / "books.db")
    db.executescript(BOOK_TABLES)
    db.executemany("INSERT INTO author VALUES (?, ?)", ((i, f"a{i}") for i in range(600)))
    db.executemany(
        "INSERT INTO book VALUES (?, ?, ?, ?, ?)",
        (
            (i, i * 7 % 550, f"Book {i}", f"2026-{i % 12 + 1:02}-{i % 28 + 1:02} 10:00", str(i))
            for i in range(BOOKS)
        ),
    )
    db.executemany("INSERT INTO loan VALUES (?, ?)", ((i, i * 5) for i in range(300)))
    db.commit()
    db.close()
    return tmp_path / "books.db"
