"""The past of a database: its first rows, and the values at the same place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queryprof.replay.past import Ranks, count_rows_of, keep_first, tables_with_rowid

pytestmark = pytest.mark.once


@pytest.fixture
def con() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


def ids(con: sqlite3.Connection, table: str) -> list[int]:
    return [id_ for (id_,) in con.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]


def fill(con: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    marks = ", ".join("?" * len(rows[0]))
    con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def test_the_first_rows_stay_and_small_tables_stay_whole(con: sqlite3.Connection) -> None:
    con.execute("CREATE TABLE big (id INTEGER PRIMARY KEY)")
    con.execute("CREATE TABLE small (id INTEGER PRIMARY KEY)")
    con.execute("CREATE TABLE keyed (id TEXT PRIMARY KEY) WITHOUT ROWID")
    con.execute("CREATE TABLE gone (id INTEGER)")
    con.execute("CREATE TRIGGER counts AFTER DELETE ON big BEGIN DELETE FROM small; END")
    fill(con, "big", [(number * 10,) for number in range(1, 101)])
    fill(con, "small", [(number,) for number in range(16)])
    fill(con, "keyed", [(str(number),) for number in range(100)])
    assert tables_with_rowid(con) == ["big", "gone", "small"]
    keep_first(con, 4)
    assert ids(con, "big") == [number * 10 for number in range(1, 26)]
    assert count_rows_of(con, "small") == 16
    assert count_rows_of(con, "keyed") == 100
    assert con.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (
        1,
    )
    con.execute("DELETE FROM big WHERE id = 10")
    assert count_rows_of(con, "small") == 0  # the trigger is there again


def test_what_kept_rows_refer_to_is_kept_over_several_tables(con: sqlite3.Connection) -> None:
    con.execute("CREATE TABLE town (id INTEGER PRIMARY KEY, code TEXT UNIQUE)")
    con.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY, town TEXT REFERENCES town (code))")
    con.execute(
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer_id INTEGER REFERENCES buyer,"
        " before INTEGER REFERENCES sale (id), other INTEGER REFERENCES missing (id))"
    )
    fill(con, "town", [(n, f"t{n}") for n in range(1, 41)])
    fill(con, "buyer", [(n, f"t{41 - n}") for n in range(1, 41)])
    fill(con, "sale", [(n, 40, None if n > 1 else 33, 1) for n in range(1, 41)])
    keep_first(con, 4)
    assert ids(con, "sale") == [*range(1, 11), 33]
    assert ids(con, "buyer") == [*range(1, 11), 40]
    assert ids(con, "town") == [*range(1, 11), *range(31, 41)]


def test_shadow_tables_of_virtual_tables_stay_whole(con: sqlite3.Connection) -> None:
    con.execute("CREATE VIRTUAL TABLE note USING fts5 (body)")
    fill(con, "note", [(f"word{n}",) for n in range(50)])
    assert tables_with_rowid(con) == []
    keep_first(con, 8)
    assert con.execute("SELECT count(*) FROM note WHERE note MATCH 'word49'").fetchone() == (1,)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("SELECT 1 FROM sale WHERE id = ?", (80,), (20,)),
        ("SELECT 1 FROM sale WHERE id = ?", (1,), (1,)),
        ("SELECT 1 FROM sale WHERE ? >= id", (40,), (10,)),
        ("SELECT 1 FROM sale s WHERE s.id = ?2 AND s.day > ?1", (400, 80), (100, 20)),
        (
            "SELECT 1 FROM sale AS s JOIN buyer b ON b.id = s.id WHERE b.id IN (?, ?)",
            (80, 4),
            (20, 4),
        ),
        (
            "SELECT 1 FROM sale WHERE id = :id LIMIT :most",
            {"id": 80, "most": 5},
            {"id": 20, "most": 5},
        ),
        ("SELECT 1 FROM sale WHERE lower(name) = ? AND id = ?", ("x", 80), ("x", 20)),
        ("SELECT 1 FROM sale LIMIT ? OFFSET ?", (10, 80), (10, 80)),
        ("SELECT 1 FROM sale WHERE id > ?", (76,), (16,)),
        ("SELECT 1 FROM sale WHERE id BETWEEN ? AND ?", (20, 40), (5, 10)),
        ("SELECT 1 FROM sale WHERE name LIKE ?", ("n40",), ("n40",)),
        ("SELECT 1 FROM sale WHERE sold < ?", (40,), (9,)),
        ("SELECT 1 FROM sale WHERE id = ?", (None,), (None,)),
        ("SELECT 1 FROM sale WHERE id = ?", (b"80",), (b"80",)),
        ("SELECT 1 FROM sale WHERE id = ?", (0,), (0,)),
        ("SELECT 1 FROM unknown WHERE id = ?", (80,), (80,)),
    ],
)
def test_a_value_keeps_its_place(
    tmp_path: Path, text: str, given: object, expected: object
) -> None:
    """Sale 80 is the newest of 80; of the first 20 it is sale 20. The four newest stay four. Half of
    the column `sold` is NULL.
    """
    whole, past = (sqlite3.connect(tmp_path / f"{name}.db") for name in ("whole", "past"))
    for con, rows in ((whole, 80), (past, 20)):
        con.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, day INTEGER, name TEXT, sold)")
        con.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY)")
        fill(con, "sale", [(n, n * 5, f"n{n}", n if n % 2 else None) for n in range(1, rows + 1)])
        fill(con, "buyer", [(n,) for n in range(1, rows + 1)])
    with closing(whole), closing(past):
        assert Ranks(whole, past).values(text, given) == expected  # type: ignore[arg-type]
