"""Functions that the program registered: SQLite calls them for each row."""

from __future__ import annotations

import sqlite3

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of
from queryprof.planner import planner

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine finds the same."""
    monkeypatch.setattr(planner, "BUDGET_S", 60)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id FROM song WHERE plain(title) = plain(?)", "calls plain(), which"),
        ("SELECT id FROM song WHERE plain(title) = plain(?)", "Store the result in a column"),
        ("SELECT id FROM song WHERE alike(title, ?) > ?", "few rows first"),
        ("SELECT id, plain(title) FROM song", "few rows first"),
        (
            "SELECT id FROM song WHERE django_datetime_cast_date(title, ?, ?) = ?",
            "`.filter(field__gte=start, field__lt=start + timedelta(days=1))`",
        ),
        ("SELECT id FROM song WHERE upper(title) = upper(?)", ""),
    ],
)
def test_the_function_is_named(sql: str, words: str) -> None:
    connection = sqlite3.connect("songs.db")
    connection.create_function("plain", 1, lambda text: text.strip().lower())
    connection.create_function("alike", 2, lambda one, other: float(one == other))
    connection.create_function("django_datetime_cast_date", 3, lambda text, *_: text)
    with queryprof.profile() as recording:
        connection.execute("CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT)")
        connection.executemany(
            "INSERT INTO song (title) VALUES (?)", [(f"a{n}",) for n in range(20_000)]
        )
        for _ in range(5):
            connection.execute(sql, ("a7",) * sql.count("?")).fetchall()
        connection.commit()
    connection.close()
    found = [one for one in findings_of(Report(recording.profile)) if one.statement == sql]
    fixes = " ".join(one.fix for one in found)
    assert ((words or "which the program registered") in fixes) == bool(words)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id FROM song WHERE plain(title) = ?", "Store the result in a column"),
        ("SELECT id FROM song WHERE upper(title) = ?", "Compare the stored column itself"),
    ],
)
def test_an_index_on_the_argument_is_of_no_use(sql: str, words: str) -> None:
    connection = sqlite3.connect("songs.db")
    connection.create_function("plain", 1, lambda text: text.strip().lower())
    with queryprof.profile() as recording:
        connection.execute("CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT)")
        connection.execute("CREATE INDEX song_title ON song (title)")
        rows = [(f"a{n}",) for n in range(20_000)]
        connection.executemany("INSERT INTO song (title) VALUES (?)", rows)
        for _ in range(5):
            connection.execute(sql, ("a7",)).fetchall()
        connection.commit()
    connection.close()
    found = [one for one in findings_of(Report(recording.profile)) if one.statement == sql]
    assert [one.category for one in found] == ["index_defeated"]
    assert words in found[0].fix


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id FROM song WHERE title LIKE ?", "Create an index on (title COLLATE NOCASE)"),
        ("SELECT id FROM song WHERE title LIKE (?)", "Create an index on (title COLLATE NOCASE)"),
        ("SELECT id FROM song WHERE title LIKE ? || '%'", "Pass the pattern as one value"),
    ],
)
def test_a_pattern_that_the_statement_puts_together_uses_no_index(sql: str, words: str) -> None:
    connection = sqlite3.connect("songs.db")
    with queryprof.profile() as recording:
        connection.execute("CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT)")
        connection.execute("CREATE INDEX song_title ON song (title)")
        rows = [(f"a{n}",) for n in range(20_000)]
        connection.executemany("INSERT INTO song (title) VALUES (?)", rows)
        for _ in range(5):
            connection.execute(sql, ("a777",)).fetchall()
        connection.commit()
    connection.execute("CREATE INDEX song_nocase ON song (title COLLATE NOCASE)")
    (*_, plan) = connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("a777%",)).fetchone()
    connection.close()
    normal_form = sql.replace("'%'", "?")
    found = next(
        one for one in findings_of(Report(recording.profile)) if one.statement == normal_form
    )
    assert words in found.fix
    assert plan.startswith("SEARCH") == ("Create" in words)
