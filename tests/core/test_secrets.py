"""A program's values are not in its trace: a secret at any place in any statement where a value may
be.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queryprof
from conftest import EXAMPLES

pytestmark = pytest.mark.once

MOST = max(30, EXAMPLES // 4)

SETUP = """
    CREATE TABLE t (a, b, "c d"); INSERT INTO t VALUES (1, 2, 3);
    CREATE TABLE u (a INTEGER PRIMARY KEY, e);
    CREATE VIEW v AS SELECT a AS x, b FROM t;
    CREATE VIRTUAL TABLE f USING fts5(body);
"""

LITERALS = (
    "'{}'",
    '"{}"',
    "'it''s {}'",
    "'{} '",
    "'a' || '{}'",
    'lower("{}")',
    "coalesce(NULL, '{}')",
    "CASE WHEN 1 THEN '{}' END",
    'json_extract(\'{{"a": 1}}\', "$.{}")',
    "e'{}'",
    "$q${}$q$",
    "$${}$$",
    "`{}`",
)
"""Forms of a value in SQL, also in the syntax of other databases."""

STATEMENTS = (
    "SELECT {}",
    "SELECT a, {} FROM t",
    "SELECT a AS n FROM t WHERE a = {}",
    "SELECT * FROM t WHERE {} = a",
    "SELECT * FROM t WHERE {} = 1 OR a > {}",
    "SELECT * FROM t WHERE a IN ({}, {})",
    "SELECT * FROM t WHERE a BETWEEN {} AND {}",
    "SELECT * FROM t WHERE b LIKE {} ESCAPE '!'",
    "SELECT * FROM t ORDER BY {}",
    "SELECT a FROM t GROUP BY {} HAVING {} = {}",
    "SELECT * FROM t LIMIT {}",
    "SELECT * FROM (SELECT {} AS x) WHERE x = {}",
    "SELECT t.a FROM t JOIN u ON t.a = {}",
    "SELECT a FROM t UNION SELECT {}",
    "WITH w(x) AS (SELECT {}) SELECT x FROM w WHERE x = {}",
    "INSERT INTO t VALUES ({}, 2, 3)",
    "INSERT INTO t (a, b) VALUES ({}, {}), ({}, 1)",
    "INSERT INTO t (a) SELECT {}",
    "REPLACE INTO u VALUES (1, {})",
    "INSERT INTO u VALUES (1, {}) ON CONFLICT (a) DO UPDATE SET e = {}",
    "UPDATE t SET a = {}, b = {} WHERE b = {}",
    "DELETE FROM t WHERE a = {}",
    "CREATE TABLE IF NOT EXISTS d (a DEFAULT {})",
    "CREATE TABLE IF NOT EXISTS k (a CHECK (a <> {}))",
    "CREATE INDEX IF NOT EXISTS i ON t (a) WHERE a = {}",
    "CREATE VIEW IF NOT EXISTS z AS SELECT a FROM t WHERE a = {}",
    "SELECT * FROM f WHERE f MATCH {}",
    "SELECT * FROM f WHERE f = {}",
    "SELECT * FROM f({})",
    "PRAGMA key = {}",
    "PRAGMA rekey={}",
    "PRAGMA main.user_version({})",
    "VACUUM INTO {}",
    "ATTACH {} AS x1",
    "ATTACH ':memory:' AS x2 KEY {}",
    "EXPLAIN SELECT {}",
    "SELECT a -> {} FROM t",
    "SELECT nosuch({})",
    "SELECT * FROM nosuch WHERE a = {}",
    "SELECT x FROM v WHERE x = {}",
    "SELECT 1 /* {} */ -- {}",
    "SELECT max(a) FILTER (WHERE a = {}) FROM t",
    "SELECT a, rank() OVER (ORDER BY {}) FROM t",
    "CREATE USER x WITH PASSWORD {}",
    "SELECT cast({} AS TEXT)",
    "SELECT * FROM t AS o WHERE EXISTS (SELECT 1 FROM t WHERE a = {})",
    "SELECT {} {} nonsense",
    "{}",
    "login {} please",
    "SELECT 1 {} {}",
    "SELECT a FROM t WHERE a IS DISTINCT FROM {}",
    "SELECT a IS NOT DISTINCT FROM 1, {} FROM t",
    "SELECT a FROM t ORDER BY a IS DISTINCT FROM b, {}",
    "EXPLAIN QUERY PLAN SELECT {}",
    "EXPLAIN PRAGMA key = {}",
    "EXPLAIN ATTACH {} AS x3",
    "EXPLAIN VACUUM INTO {}",
)

BARE = (
    "PRAGMA key = {}",
    "ATTACH {} AS x1",
    "ATTACH ':memory:' AS x2 KEY {}",
    "{}",
    "login {} please",
    "SELECT * FROM t WHERE a = {}",
    "SELECT 1 {} nonsense",
    "SELECT {} FROM nosuch",
    "{} {}",
    "INSERT INTO t VALUES ({}, 2, 3)",
    "SELECT 1\0{}",
    "EXPLAIN PRAGMA key = {}",
    "EXPLAIN PRAGMA key({})",
    "EXPLAIN ATTACH ':memory:' AS x4 KEY {}",
    "EXPLAIN VACUUM INTO {}",
    "postgresql://bob:{}@host/db",
    "login bob@{} please",
    "https://example.org/?token=${}",
    "SELECT a FROM t WHERE a = x.{}.y",
    "SELECT a FROM t WHERE a = {}.y",
    "SELECT x {} FROM t",
    "Unlocked the safe: {} is the code",
    "the door is locked: {}",
    "binding {} to it",
    "SELECT * FROM t WHERE a = {} AND b = 'it is locked",
    "{} has no such table",
    "locked {}",
    "SELECT 1 FROM t WHERE b = {} AND a = 'no such thing",
    "readonly {}",
    "no such table: {}",
    "SELECT a FROM t WHERE a = [{}]",
    "SELECT a FROM t WHERE a = `{}`",
    "database is locked {}",
    "INSERT INTO t VALUES (1, 2, 3); INSERT INTO t VALUES ({})",
    "SELECT 1; my password is {}",
    "INSERT INTO u VALUES (1, 1); INSERT INTO u VALUES (1, 1); {} was pasted",
)
"""Statements in which a value without quotes cannot be one of SQLite's names."""


ATTEMPTS = """
import sqlite3
import apsw

def attempt(connection, text):
    cursor = connection.cursor()
    is_apsw = isinstance(connection, apsw.Connection)
    runs = [connection.execute, lambda text: connection.executemany(text, [()])]
    if not is_apsw:
        runs.append(connection.executescript)
    # A transaction is open in the midst: the driver ends it by a statement of its own.
    for start in (None, "INSERT INTO t VALUES (1, 2, 3)", "SELECT 1; "):
        for run in runs:
            try:
                if start and not start.endswith(" "):
                    cursor.execute(start)
                run(start + text if start and start.endswith(" ") else text)
            except (sqlite3.Error, sqlite3.Warning, ValueError, apsw.Error, TypeError):
                pass  # a failed statement is recorded, too
            if is_apsw and connection.in_transaction:
                connection.execute("ROLLBACK")

def connections(setup):
    for connection in (sqlite3.connect(":memory:"), apsw.Connection(":memory:")):
        getattr(connection, "executescript", connection.execute)(setup)
        yield connection
"""
"""Each text alone, after an accepted statement, and within a transaction, by both drivers."""


def secret_of(seed: int) -> str:
    return "Hush" + "".join(random.Random(seed).choices("abcdefXYZ0123456789", k=12))


def bytes_of_recording(texts: list[str], path: Path) -> bytes:
    """Return the trace of a program that runs these texts, whether they succeed or fail."""
    made: dict[str, Callable[..., Any]] = {}
    exec(ATTEMPTS, made)
    path.unlink(missing_ok=True)
    with contextlib.chdir(path.parent):
        connections = list(made["connections"](SETUP))
        with queryprof.profile(path):
            for connection in connections:
                for text in texts:
                    made["attempt"](connection, text)
        for connection in connections:
            connection.close()
    return path.read_bytes()


@settings(
    max_examples=MOST,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(LITERALS)), min_size=1, max_size=20
    ),
    st.integers(0, 10**6),
)
def test_no_secret_is_in_the_trace(
    tmp_path: Path, pieces: list[tuple[str, str]], seed: int
) -> None:
    """This holds for any statement and any quotes."""
    secret = secret_of(seed)
    texts = [statement.replace("{}", literal.format(secret)) for statement, literal in pieces]
    trace = bytes_of_recording(texts, tmp_path / "s.qprof")
    assert secret.lower().encode() not in trace.lower(), texts


@pytest.mark.parametrize("statement", BARE)
def test_a_value_without_quotes_is_not_in_the_trace(tmp_path: Path, statement: str) -> None:
    """For a rejected text only known words are shown, and nothing that may be a value."""
    secret = secret_of(7)
    trace = bytes_of_recording([statement.replace("{}", secret)], tmp_path / "s.qprof")
    assert secret.lower().encode() not in trace.lower()


CALLBACKS: dict[str, Callable[[sqlite3.Connection], None]] = {
    "none": lambda connection: None,
    "progress": lambda connection: connection.set_progress_handler(lambda: 0, 1),
    "authorizer": lambda connection: connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK),
}


@pytest.mark.parametrize("set_callback", CALLBACKS.values(), ids=CALLBACKS)
def test_quoted_columns_are_shown(
    tmp_path: Path, set_callback: Callable[[sqlite3.Connection], None]
) -> None:
    """SQLite reports which quoted words are names, even in a database that existed before."""
    path = tmp_path / "made.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SETUP)
    connection.close()
    with queryprof.profile() as recording:
        connection = sqlite3.connect(path)
        set_callback(connection)
        for value in ("x", "y"):
            connection.execute('SELECT 1 FROM "t" WHERE "a" = ?', (value,))
            connection.execute('SELECT 1 FROM "t" WHERE "c d" = ?', (value,))
            connection.execute('SELECT "a" FROM "t" WHERE "c d" = ? AND "b" = "secret"', (value,))
            connection.execute(f'SELECT "a" FROM "t" WHERE "c d" = {value!r} ORDER BY "a"')
        connection.close()
    statements = {a.statement: a.count for a in recording.profile.aggregates if a.count}
    assert statements['SELECT "a" FROM "t" WHERE "c d" = ? AND "b" = ?'] == 2
    assert statements['SELECT "a" FROM "t" WHERE "c d" = ? ORDER BY "a"'] == 2
    assert statements['SELECT ? FROM "t" WHERE "a" = ?'] == 2
    assert statements['SELECT ? FROM "t" WHERE "c d" = ?'] == 2


def statements_of(texts: list[str]) -> list[str]:
    """Return the statement of each text. The texts run in this order in a new database."""
    found = []
    connection = sqlite3.connect(":memory:")
    for text in texts:
        with queryprof.profile() as recording:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(text)
        found += [a.statement for a in recording.profile.aggregates if a.count]
    connection.close()
    return found


def test_a_text_looks_the_same_whatever_ran_before_it() -> None:
    """A column learned from another text changes an accepted text, never a rejected one."""
    table, text = 'CREATE TABLE "p" (i)', 'UPDATE "p" SET "n" = 1 WHERE "i" = 1'
    column, other = 'ALTER TABLE "p" ADD n', 'SELECT 1 FROM "p" WHERE "i" = 2'
    refused, taken = 'UPDATE "p" SET "n" = ? WHERE ? = ?', 'UPDATE "p" SET "n" = ? WHERE "i" = ?'
    with queryprof.profile():
        assert statements_of([table, text, other, column, text])[1::3] == [refused, taken]
        assert statements_of([table, other, text, column, text])[2::2] == [refused, taken]


COMMENTED = "/* a */ -- b\n SELECT called(?) AS named; /* c **/ -- d"
"""A text that a database reads completely, although its statement is only a part of it."""


def test_a_text_that_was_read_to_its_end_keeps_its_words() -> None:
    """This holds even if it fails afterwards, or if only a later execution fails."""
    apsw = pytest.importorskip("apsw")

    def called(value: int) -> int:
        return 1 // value

    def ask_sqlite3(values: tuple[int, ...]) -> None:
        connection = sqlite3.connect(":memory:")
        connection.create_function("called", 1, called)
        for value in values:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(COMMENTED, (value,))
        connection.close()

    def ask_apsw(values: tuple[int, ...]) -> None:
        connection = apsw.Connection(":memory:")
        connection.create_scalar_function("called", called)
        for value in values:
            connection.execute(COMMENTED, (value,))
        connection.close()

    for ask, values in ((ask_sqlite3, (0,)), (ask_sqlite3, (1, 1, 1, 0)), (ask_apsw, (1,))):
        with queryprof.profile() as recording:
            ask(values)
        selects = [a for a in recording.profile.aggregates if "SELECT" in a.statement]
        assert {a.statement for a in selects} == {"SELECT called(?) AS named"}
        assert sum(a.count for a in selects) == len(values)
