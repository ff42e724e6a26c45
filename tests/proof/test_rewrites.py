"""Rewritten statements are faster and have equal rows. None is proposed if the rows may differ."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proof.conftest import BOOKS
from proof.counted_time import CountingJudge, counted, proved

import queryprof as api
from conftest import QUERYPROF
from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of
from queryprof.findings.proved import with_proofs
from queryprof.model.advice import Advice
from queryprof.planner.judging import Measurement
from queryprof.proof.joining import _JoinedQuery, _pair_keys
from queryprof.proof.rewriting import plain_select
from queryprof.proof.workload import Sample

pytestmark = pytest.mark.once


Work = Callable[[sqlite3.Connection], object]


def advice_on(
    books: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: Work,
    parameters: str = "1",
    judge: type[CountingJudge] = CountingJudge,
) -> tuple[Advice, Report]:
    monkeypatch.setenv("QUERYPROF_PARAMETERS", parameters)
    with api.profile() as recording:
        connection = sqlite3.connect(books)
        work(connection)
        connection.close()
    report = Report(counted(recording.profile))
    return proved(report, str(books), findings_of(report, [str(books)]), judge), report


def each(db: sqlite3.Connection, sql: str, values: list[tuple[object, ...]]) -> None:
    for value in values:
        db.execute(sql, value).fetchall()


def of_authors(inner: str, outer: str = "SELECT id, name FROM author WHERE id < ?") -> Work:
    def work(db: sqlite3.Connection) -> None:
        for row in db.execute(outer, (400,)).fetchall():
            db.execute(inner, (row[0],)).fetchall()

    return work


def of_books(db: sqlite3.Connection) -> None:
    books = db.execute("SELECT id, author_id, title FROM book WHERE id < ?", (400,)).fetchall()
    for book in books:
        db.execute("SELECT name FROM author WHERE id = ?", (book[1],)).fetchone()


DAYS = [(f"2026-03-{day:02}",) for day in range(1, 25)]
NAMES = [(f"book {number}",) for number in range(24)]
REWRITTEN: dict[str, tuple[Work, str, str]] = {
    "keyset": (
        lambda db: each(
            db,
            "SELECT id, title FROM book ORDER BY created DESC LIMIT ? OFFSET ?",
            [(30, number) for number in range(0, BOOKS, 300)],
        ),
        "OFFSET",
        "(created, id) < (?, ?) ORDER BY created DESC, id DESC LIMIT ?",
    ),
    "keyset of a key": (
        lambda db: each(
            db,
            "SELECT title FROM book b WHERE code <> ? ORDER BY b.id LIMIT ? OFFSET ?",
            [("x", 20, number) for number in range(0, BOOKS, 300)],
        ),
        "OFFSET",
        "code <> ? AND b.id > ? ORDER BY b.id LIMIT ?",
    ),
    "day": (
        lambda db: each(db, "SELECT count(*) FROM book WHERE date(created) = ?", DAYS),
        "date(",
        "(created >= ? AND created < ? || '~' AND DATE(created) = ?)",
    ),
    "case": (
        lambda db: each(db, "SELECT id FROM book WHERE lower(title) = ?", NAMES),
        "lower(",
        "(title = ? COLLATE NOCASE AND LOWER(title) = ?)",
    ),
    "collation": (
        lambda db: each(db, "SELECT id FROM book WHERE title = ?", [("Book 7",)] * 24),
        "title =",
        "(title = ? COLLATE NOCASE AND title = ?)",
    ),
    "types": (
        lambda db: each(
            db,
            "SELECT b.id FROM loan l JOIN book b ON b.code = l.code WHERE l.id > ?",
            [(number,) for number in range(200, 224)],
        ),
        "b.code",
        "b.code = CAST(l.code AS TEXT)",
    ),
    "join": (
        of_authors("SELECT id, title FROM book WHERE author_id = ?"),
        "author_id",
        "LEFT JOIN book ON author_id = outer_rows.outer_id",
    ),
    "join by a reference": (of_books, "FROM author", "ON id = outer_rows.outer_author_id"),
    "count": (
        of_authors("SELECT count(*) FROM book WHERE author_id = ?"),
        "author_id",
        "(SELECT COUNT(*) FROM book WHERE author_id = outer_rows.outer_id)",
    ),
}


@pytest.mark.parametrize("parameters", ["1", ""], ids=["recorded", "drawn"])
@pytest.mark.parametrize("name", REWRITTEN)
@pytest.mark.repeats
def test_a_faster_text_is_found(
    books: Path, monkeypatch: pytest.MonkeyPatch, name: str, parameters: str
) -> None:
    work, before, after = REWRITTEN[name]
    advice, report = advice_on(books, monkeypatch, work, parameters)
    (rewrite,) = advice.rewrites
    assert before in rewrite.statement
    assert after in rewrite.sql
    assert rewrite.after.ns < rewrite.before.ns
    assert rewrite.is_drawn == (not parameters)
    fixes = [one for one in with_proofs(findings_of(report, [str(books)]), advice) if one.code]
    assert any(one.code.endswith(f"{rewrite.sql};") and "proved" in one.fix for one in fixes)


@pytest.mark.parametrize(
    ("rows", "most", "column"),
    [(400, 1000, "author_id"), (8, 8, "author_id"), (8, 9, "id")],
    ids=["all", "some", "no more"],
)
def test_a_value_is_missing_only_where_all_rows_are_known(
    monkeypatch: pytest.MonkeyPatch, rows: int, most: int, column: str
) -> None:
    """Other rows refer to the keys of the first rows."""
    monkeypatch.setattr("queryprof.proof.joining.MAX_KEYS", most)
    names = ["id", "author_id", "title"]
    sql = "SELECT name FROM author WHERE id = ?"
    inners = [Sample(sql, (number,), is_drawn=False) for number in (1, 2, 3)]
    asked = [(number, number * 7 % 550, "x") for number in range(rows)]
    ((place, number),) = _pair_keys(inners, names, asked)
    assert (place, names[number]) == (0, column)


@pytest.mark.parametrize(("share", "is_advised"), [(0.79, True), (0.81, False)])
@pytest.mark.repeats
def test_a_text_is_advised_that_is_faster_by_a_fifth(
    books: Path, monkeypatch: pytest.MonkeyPatch, share: float, is_advised: bool
) -> None:
    class Judge(CountingJudge):
        def measure(
            self, names: Sequence[str], sql: str, *others: Any
        ) -> Mapping[str, Measurement]:
            ns = 1e6 if "OFFSET" in sql else share * 1e6
            found = super().measure(names, sql, *others)
            return {name: replace(one, ns=ns) for name, one in found.items()}

    advice, _ = advice_on(books, monkeypatch, REWRITTEN["keyset"][0], judge=Judge)
    assert bool(advice.rewrites) == is_advised


@pytest.mark.parametrize(("ns", "is_advised"), [(166_000.0, False), (167_000.0, True)])
@pytest.mark.repeats
def test_a_text_is_not_advised_where_an_index_wins_three_times_as_much(
    books: Path, monkeypatch: pytest.MonkeyPatch, ns: float, is_advised: bool
) -> None:
    """The rewritten statement takes 500,000 ns. The parameter is the time of the original with the
    index.
    """

    class Judge(CountingJudge):
        def measure(
            self, names: Sequence[str], sql: str, *others: Any
        ) -> Mapping[str, Measurement]:
            found = super().measure(names, sql, *others)
            taken_ns = 1e6 if "OFFSET" in sql else 500_000
            return {name: replace(one, ns=taken_ns) for name, one in found.items()}

    monkeypatch.setattr("queryprof.proof.rewrites._original_ns_after_changes", lambda *_: ns)
    advice, _ = advice_on(books, monkeypatch, REWRITTEN["keyset"][0], judge=Judge)
    assert [one.with_changes for one in advice.rewrites] == ([False] if is_advised else [True])


@pytest.mark.parametrize(("rows_each", "is_joined"), [(1.0, True), (1.01, False), (0.5, True)])
def test_a_join_finds_nine_tenths_of_what_the_program_found(
    rows_each: float, is_joined: bool
) -> None:
    """Nine of ten outer rows match one row in the other table."""
    outer = Sample("SELECT id FROM one", (), is_drawn=False)
    inner = Sample("SELECT name FROM two WHERE id = ?", (1,), is_drawn=False)
    found: dict[object, list[tuple[object, ...]]] = {number: [("x",)] for number in range(9)}
    turn = _JoinedQuery(["id"], 0, 0, lambda *_: False).make_trial(
        outer,
        inner,
        [(number,) for number in range(10)],
        lambda _, values: found.get(values[0], []),
        rows_each,
    )
    assert (turn is not None) == is_joined


def test_rows_are_equal_whatever_the_values(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old comparison stays, next to one that an index serves."""
    for name, of_rewrite in (("day", DAYS), ("case", NAMES), ("collation", NAMES)):
        advice, _ = advice_on(books, monkeypatch, REWRITTEN[name][0])
        (rewrite,) = advice.rewrites
        times = rewrite.sql.count("?")
        with closing(sqlite3.connect(books)) as db:
            for value in (*of_rewrite, ("BOOK 7",), ("Book 7",), (None,), (7,), ("",), ("ÄÖ",)):
                rows = db.execute(rewrite.statement, value).fetchall()
                assert db.execute(rewrite.sql, value * times).fetchall() == rows, (name, value)


def test_a_join_has_the_rows_of_the_loop(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice, _ = advice_on(books, monkeypatch, REWRITTEN["join"][0])
    (rewrite,) = advice.rewrites
    inner = "SELECT id, title FROM book WHERE author_id = ?"
    with closing(sqlite3.connect(books)) as db:
        expected = [
            (*author, *book)
            for author in db.execute("SELECT id, name FROM author WHERE id < 400").fetchall()
            for book in db.execute(inner, author[:1]).fetchall() or [(None, None)]
        ]
        assert sorted(db.execute(rewrite.sql, (400,))) == sorted(expected)


def nulls(db: sqlite3.Connection) -> None:
    db.execute("UPDATE book SET created = NULL WHERE id % 3 = 0")
    db.commit()
    REWRITTEN["keyset"][0](db)


def other_spelling(db: sqlite3.Connection) -> None:
    """Numbers with leading zeros are equal as numbers, but not as texts."""
    db.execute("UPDATE book SET code = '0' || code WHERE id % 2")
    db.commit()
    REWRITTEN["types"][0](db)


def numbers(db: sqlite3.Connection) -> None:
    """lower() turns a number into a text, which equals no number in a column without a type."""
    db.executescript(
        "CREATE TABLE mixed (value); CREATE INDEX mixed_value ON mixed (value COLLATE NOCASE);"
        " INSERT INTO mixed SELECT CASE WHEN id % 2 THEN id ELSE title END FROM book"
    )
    each(db, "SELECT rowid FROM mixed WHERE lower(value) = ?", NAMES)


NONE: dict[str, Work] = {
    "numbers among texts": numbers,
    "grouped": lambda db: each(
        db,
        "SELECT created, count(*) FROM book GROUP BY created ORDER BY created LIMIT 5 OFFSET ?",
        [(number,) for number in range(0, 300, 10)],
    ),
    "an order of an expression": lambda db: each(
        db,
        "SELECT id FROM book ORDER BY length(title), id LIMIT 5 OFFSET ?",
        [(number,) for number in range(0, BOOKS, 300)],
    ),
    "NULL in the order": nulls,
    "texts that are equal as numbers": other_spelling,
    "an inner query with an aggregate of two": of_authors(
        "SELECT count(*), max(id) FROM book WHERE author_id = ?"
    ),
}


@pytest.mark.parametrize("name", NONE)
@pytest.mark.repeats
def test_what_may_have_other_rows_is_not_advised(
    books: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    advice, _ = advice_on(books, monkeypatch, NONE[name])
    assert not [one for one in advice.rewrites if " + 0" not in one.sql], advice.rewrites


@pytest.mark.slow
def test_the_command_says_it(books: Path) -> None:
    Path("program.py").write_text(
        f"import sqlite3\ndb = sqlite3.connect({str(books)!r})\nfor number in range(0, 12000,"
        " 300):\n    db.execute('SELECT title FROM book ORDER BY id LIMIT 9 OFFSET :at', {'at':"
        " number}).fetchall()\n"
    )
    command = [QUERYPROF, "run", "--parameters", "--no-report", "-o", "x.qprof", "program.py"]
    subprocess.run(command, check=True, timeout=60)
    command = [QUERYPROF, "analyze", "x.qprof", "--db", books, "--prove", "--budget", "1h"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    words = " ".join(result.split())
    assert re.search(r"proved: .{5,40} after rewriting, on the unchanged database", words)
    assert "SELECT title FROM book WHERE id > :last_id ORDER BY id LIMIT 9;" in words
    sql = subprocess.run(
        [*command, "--format", "sql"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert re.search("-- In the program: proved: .{5,40} after rewriting, ", sql)
    with closing(sqlite3.connect(books)) as db:
        db.executescript(sql)
    page = [QUERYPROF, "html", "x.qprof", "--db", books, "--prove", "-o", "x.html"]
    subprocess.run(page, check=True, timeout=60, capture_output=True)
    assert "Measured on a copy of" in Path("x.html").read_text()
    result = subprocess.run([*page[:3], "--prove"], capture_output=True, text=True, check=False)
    assert (result.returncode, "--prove needs one --db" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t UNION SELECT b FROM u",
        "WITH c AS (SELECT 1) SELECT * FROM c",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t GROUP BY a",
        "INSERT INTO t SELECT 1",
        "SELECT 1",
        "",
        "((((",
    ],
)
def test_what_is_no_plain_select_is_left_alone(sql: str) -> None:
    assert plain_select(sql) is None
