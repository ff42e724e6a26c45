"""Advice: the index for a planted fault is found and proved. If no index helps, none is advised."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from proof.conftest import ROWS
from proof.counted_time import counted, proved

import queryprof as api
from conftest import Run
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.model.advice import Advice
from queryprof.proof import sample
from queryprof.report.text.advice import advice_cautions, saving_summary

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    ROOT / "examples" / "indexes" / "shop.py",
    ROOT / "tests" / "programs" / "advice" / "telemetry.py",
    ROOT / "tests" / "programs" / "advice" / "crm.py",
)


def advice_on(
    database: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[sqlite3.Connection], object]
) -> Advice:
    """Return the advice for some work on a database."""
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    with api.profile() as recording:
        connection = sqlite3.connect(database)
        work(connection)
        connection.commit()
        connection.close()
    return proved(Report(counted(recording.profile)), str(database))


def rows_of(database: Path, columns: Sequence[str]) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as db:
        return db.execute(f"SELECT {', '.join(columns)} FROM item").fetchmany(99)


@dataclass(frozen=True)
class Planted:
    """A query, its parameters, and the columns of the indexes that serve it best."""

    name: str
    sql: str
    values: tuple[object, ...]
    accepted: tuple[tuple[str, ...], ...]
    setup: str = ""


PLANTED = (
    Planted(
        "equal", "SELECT id, name FROM item WHERE owner = ?", (7,), (("owner",), ("owner", "name"))
    ),
    Planted(
        "two equal",
        "SELECT text FROM item WHERE owner = ? AND kind = ?",
        (7, "kind 3"),
        (("owner", "kind"), ("kind", "owner"), ("owner",)),
    ),
    Planted(
        "range",
        "SELECT text FROM item WHERE kind = ? AND at > ?",
        ("kind 3", 990_000),
        (("kind", "at"), ("at",), ("at", "kind")),
    ),
    Planted("order", "SELECT text FROM item ORDER BY at DESC LIMIT 10", (), (("at",),)),
    Planted(
        "covering",
        "SELECT at, price FROM item WHERE kind = ?",
        ("kind 3",),
        (("kind", "at", "price"), ("kind", "price", "at")),
    ),
    Planted(
        "expression", "SELECT id FROM item WHERE lower(name) = ?", ("name 7",), (("lower(name)",),)
    ),
    Planted(
        "collation",
        "SELECT id FROM item WHERE name = ? COLLATE NOCASE",
        ("NAME 7",),
        (("name COLLATE NOCASE",),),
    ),
    Planted("pattern", "SELECT id FROM item WHERE code LIKE ?", ("code77%",), (("code",),)),
    Planted(
        "join",
        "SELECT o.name, i.name FROM owner o JOIN item i ON i.owner = o.id WHERE o.city = ?",
        ("city 7",),
        (("owner",), ("owner", "name"), ("city",)),
    ),
    Planted(
        "subquery",
        "SELECT o.id, (SELECT max(at) FROM item i WHERE i.owner = o.id) FROM owner o"
        " WHERE o.id < ?",
        (30,),
        (("owner", "at"), ("owner",)),
    ),
    Planted(
        "or",
        "SELECT id, text FROM item WHERE owner = ? OR at = ?",
        (7, 77),
        (("owner",), ("at",), ("owner", "at"), ("at", "owner")),
    ),
    Planted(
        "json",
        "SELECT id FROM item WHERE json_extract(data, '$.city') = ?",
        ("city 7",),
        (("json_extract(data, '$.city')",),),
    ),
    Planted("null", "SELECT id FROM item WHERE price IS NULL", (), (("price",),)),
    Planted("group", "SELECT kind, count(*) FROM item GROUP BY kind", (), (("kind",),)),
    Planted(
        "bounds",
        "SELECT min(price) FROM item WHERE owner = ?",
        (7,),
        (("owner", "price"), ("owner",)),
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
@pytest.mark.repeats
def test_the_index_is_found(
    database: Path, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    advice = advice_on(
        database,
        monkeypatch,
        lambda db: [db.execute(planted.sql, planted.values).fetchall() for _ in range(4)],
    )
    found = [change.sql.partition("(")[2].rpartition(")")[0] for change in advice.changes]
    assert found, advice.proofs
    assert set(found) <= {", ".join(columns) for columns in planted.accepted}
    (proof,) = [one for one in advice.proofs if one.is_proved]
    assert proof.after.ns < proof.before.ns
    assert set(proof.uses) == {change.index for change in advice.changes}


def test_no_more_rows_are_read_than_the_program_read(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program reads ten of about 1,200 times 1,200 rows."""
    sql = "SELECT a.id FROM item a, item b WHERE a.at >= ? AND b.at >= ?"

    def work(db: sqlite3.Connection) -> None:
        for _ in range(20):
            db.execute(sql, (900_000, 900_000)).fetchmany(10)

    (proof,) = advice_on(database, monkeypatch, work).proofs
    assert proof.before.vm_steps
    assert proof.before.vm_steps < 10 * ROWS


@pytest.mark.parametrize(
    "seed",
    [0, 118, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_any_workload_gets_indexes_that_are_used_and_told_apart(
    database: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    columns = ("owner", "kind", "name", "at", "price", "code")
    rows = rows_of(database, columns)

    def work(db: sqlite3.Connection) -> None:
        for _ in range(12):
            chosen = draw.sample(range(len(columns)), draw.randint(1, 3))
            terms = [f"{columns[i]} {draw.choice(('=', '=', '<', '>='))} ?" for i in chosen]
            read = draw.choice(("count(*)", "*", *columns))
            order = draw.choice(("", f" ORDER BY {draw.choice(columns)}"))
            sql = f"SELECT {read} FROM item WHERE {' AND '.join(terms)}{order}"
            for _ in range(draw.choice((1, 5))):
                row = draw.choice(rows)
                db.execute(sql, [row[i] for i in chosen]).fetchmany(draw.choice((1, 10_000)))

    advice = advice_on(database, monkeypatch, work)
    found = [change.sql for change in advice.changes if change.index]
    used = {index for proof in advice.proofs for index in proof.uses}
    assert {change.index for change in advice.changes if change.index} <= used
    for one in found:
        beginning = one.partition(" ON ")[2].removesuffix(");")
        others = [other.partition(" ON ")[2].removesuffix(");") for other in found if other != one]
        assert beginning not in others
        assert not any(other.startswith(beginning + ",") for other in others)


@pytest.mark.parametrize("planted", PLANTED[:8], ids=lambda one: one.name)
@pytest.mark.repeats
def test_a_sample_of_a_large_database_chooses_the_same(
    database: Path, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    """All figures refer to the whole copy."""
    monkeypatch.setattr(sample, "LARGE_BYTES", 0)
    monkeypatch.setattr(sample, "SAMPLE_BYTES", database.stat().st_size // 4)
    monkeypatch.setattr(sample, "LARGE_ROWS", 1000)
    advice = advice_on(
        database,
        monkeypatch,
        lambda db: [db.execute(planted.sql, planted.values).fetchall() for _ in range(4)],
    )
    assert advice.sample_every == 4
    found = [change.sql.partition("(")[2].rpartition(")")[0] for change in advice.changes]
    assert found
    assert set(found) <= {", ".join(columns) for columns in planted.accepted}
    with closing(sqlite3.connect(database)) as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    (proof,) = [one for one in advice.proofs if one.is_proved]
    if planted.name in ("equal", "expression"):
        assert proof.before.page_fetches
        assert proof.before.page_fetches > pages / 2, "the whole table was read"


def test_a_write_that_begins_with_with_is_taken_back(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "WITH old AS (SELECT id FROM item WHERE owner = ?) DELETE FROM item WHERE id IN old"

    def work(db: sqlite3.Connection) -> None:
        for _ in range(4):
            db.execute(sql, (7,))
            db.rollback()

    advice = advice_on(database, monkeypatch, work)
    assert [change.sql for change in advice.changes] == [
        "CREATE INDEX item_owner_idx ON item (owner);"
    ]
    assert [proof.is_proved for proof in advice.proofs] == [True]


NOTHING = (
    ("primary key", "SELECT name FROM item WHERE id = ?", (7,)),
    ("all of it", "SELECT * FROM item", ()),
    ("range of keys", "SELECT text FROM item WHERE id BETWEEN ? AND ?", (100, 5000)),
    ("words inside", "SELECT * FROM item WHERE text LIKE '%no such word%'", ()),
    ("most rows", "SELECT * FROM item WHERE price > ?", (0.01,)),
    ("small table", "SELECT a FROM small WHERE a = ?", (7,)),
    ("no table", "SELECT ? + 1", (7,)),
    ("many columns", "SELECT sum(length(text)), sum(length(data)), sum(id) FROM item", ()),
    ("key order", "SELECT text FROM item ORDER BY id DESC LIMIT 10", ()),
)


@pytest.mark.parametrize(("name", "sql", "values"), NOTHING, ids=lambda one: str(one)[:20])
@pytest.mark.repeats
def test_no_index_helps(
    database: Path, monkeypatch: pytest.MonkeyPatch, name: str, sql: str, values: tuple[object, ...]
) -> None:
    advice = advice_on(
        database, monkeypatch, lambda db: [db.execute(sql, values).fetchall() for _ in range(20)]
    )
    assert advice.changes == (), name


def test_an_index_that_loses_more_than_it_wins(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are one cheap query and very many inserts. The advice shows what the index saves and
    costs.
    """

    def work(db: sqlite3.Connection) -> None:
        db.execute("SELECT count(*) FROM item WHERE price > 2").fetchall()
        values = [(None, 1, "k", "n", 1, 0.5, "c", "{}", "t")] * 100_000
        db.executemany("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        db.rollback()

    advice = advice_on(database, monkeypatch, work)
    assert advice.changes == ()
    (one,) = advice.outweighed
    assert one.sql == "CREATE INDEX item_price_idx ON item (price);"
    assert one.statements == ("SELECT count(*) FROM item WHERE price > ?",)
    assert one.inserts == 100_000
    assert 0 < one.win_ns < one.loss_ns
    assert "Neither a single index nor ANALYZE" not in saving_summary(advice)
    assert any(
        "would cost 100,000 recorded inserts" in message for message in advice_cautions(advice)
    )


def test_an_index_that_updates_lose_more_to(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexed column changes all the time, and each UPDATE also writes the index."""

    def work(times: int) -> Callable[[sqlite3.Connection], None]:
        def update(db: sqlite3.Connection) -> None:
            db.execute("SELECT count(*) FROM item WHERE at > 999900").fetchall()
            for number in range(times):
                db.execute("UPDATE item SET at = ? WHERE id = ?", (number, number % 100))
            db.rollback()

        return update

    assert advice_on(database, monkeypatch, work(10)).changes
    assert advice_on(database, monkeypatch, work(2_000)).changes == ()


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program(queryprof: Run, tmp_path: Path, program: Path) -> None:
    """Its indexes are few and all used, the best first, and none is a prefix of another."""
    path = str(tmp_path / "program.db")
    subprocess.run([sys.executable, program, path, "fill"], check=True)
    queryprof("run", "--parameters", "--no-report", "-o", "x.qprof", program, path)
    advice = proved(Report(counted(read_profile("x.qprof"))), path)
    assert advice.is_complete
    assert advice.after_ns < 0.3 * advice.before_ns
    assert 1 <= len(advice.changes) <= 8
    wins_ns = [change.win_ns for change in advice.changes if change.index]
    assert wins_ns == sorted(wins_ns, reverse=True)
    used = {index for proof in advice.proofs for index in proof.uses}
    assert {change.index for change in advice.changes} - {""} <= used
    columns = [
        change.sql.partition(" ON ")[2].rstrip(");") for change in advice.changes if change.index
    ]
    assert not [
        one for one in columns for other in columns if one != other and other.startswith(one)
    ]


def test_other_rows_are_no_proof(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index has another order than the table, and a LIMIT takes the first of equal rows."""
    query = "SELECT id FROM item WHERE at BETWEEN ? AND ? LIMIT 2"
    advice = advice_on(
        filled,
        monkeypatch,
        lambda db: [db.execute(query, (n * 9000, n * 9000 + 2000)).fetchall() for n in range(60)],
    )
    (proof,) = advice.proofs
    assert not proof.is_proved
    assert proof.doubt.startswith("the rows differ: ORDER BY does not fix")
