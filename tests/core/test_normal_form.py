"""Fingerprints: which parts of a SQL text count."""

from __future__ import annotations

import sqlite3
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.core._core import normal_form

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("expected", "sql"),
    [
        ("SELECT a FROM t WHERE b = ?", "select a from t where b = 5"),
        ("SELECT a FROM t WHERE b = ?", "  SELECT\n a FROM\tt WHERE b='x''y' ; "),
        ("SELECT a FROM t WHERE b = ?", "Select a -- why\nfrom t /* because */ where b=0x1F"),
        ("SELECT ?, ?, ?, ?", "select 1.5e-10, .5, x'00ff', -7"),
        ("SELECT a - ? FROM t", "select a - 5 from t"),
        ("SAVEPOINT ?", "savepoint s140_x1"),
        ("SAVEPOINT ?", 'SAVEPOINT "sqlite_utils_4f"'),
        ("RELEASE ?", "release s140_x1"),
        ("RELEASE SAVEPOINT ?", "release savepoint [s 140]"),
        ("ROLLBACK TO ?", "rollback to s140_x1"),
        ("ROLLBACK TO SAVEPOINT ?", "rollback to savepoint s140_x1"),
        ("ROLLBACK TRANSACTION TO SAVEPOINT ?", "rollback transaction to savepoint `s1`"),
        ("SELECT name RELEASE, x FROM t", "select name release, x from t"),
        ("CREATE TABLE RELEASE (id)", "create table release(id)"),
        ("SELECT (a) - ?", "select (a) - 5"),
        ("SELECT a FROM t WHERE b IN (?)", "select a from t where b in (1, 2, 3)"),
        ("SELECT a FROM t WHERE b IN (?)", "select a from t where b in (?,?,?)"),
        ("SELECT a FROM t WHERE b IN (?)", "select a from t where b in (-1, null)"),
        ("SELECT a FROM t WHERE b IN (:b_1)", "select a from t where b in (:b_1, :b_2, :b_3)"),
        (
            "SELECT a FROM t WHERE (a, b) IN ((?, ?))",
            "select a from t where (a,b) in ((1,2),(3,4))",
        ),
        (
            "SELECT a FROM t WHERE b IN (SELECT c, c FROM u)",
            "select a from t where b in (select c, c from u)",
        ),
        ("INSERT INTO t VALUES (?, ?)", "insert into t values (1, 'a'), (2, 'b'), (3, null)"),
        (
            "INSERT INTO t(a, b) VALUES (:a0, :b0)",
            "insert into t (a, b) values (:a0, :b0), (:a1, :b1)",
        ),
        (
            "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING",
            "insert into t values (1), (2) on conflict do nothing",
        ),
        ("INSERT INTO t VALUES (lower(?))", "insert into t values (lower('A')), (lower('B'))"),
        ("SELECT a FROM t WHERE b IS NULL", "select a from t where b is null"),
        ('SELECT ?, [c d], ? FROM "t"', 'select "a b", [c d], `e` from "t"'),
        (
            'SELECT "t"."a", "f"(?) FROM "t", "u" WHERE "t"."b" = ?',
            'select "t"."a", "f"("x") from "t", "u" where "t"."b" = "x"',
        ),
        ('INSERT INTO "t"("a", "b") VALUES (?, ?)', 'insert into "t" ("a", "b") values ("x", "y")'),
        (
            'UPDATE "t" SET "a" = ?, "b" = ? WHERE "t"."c" = ?',
            'update "t" set "a" = "x", "b" = "y" where "t"."c" = "z"',
        ),
        ('SELECT a AS "n" FROM t ORDER BY "n"', 'select a as "n" from t order by "n"'),
        ("SELECT a AS ? FROM t WHERE a = ?", 'select a as "n" from t where a = "n"'),
        (
            'CREATE TABLE "t"("a" TEXT DEFAULT ?, PRIMARY KEY ("a"))',
            'create table "t" ("a" TEXT default "x", primary key ("a"))',
        ),
        ('CREATE INDEX "i" ON "t"("a")', 'create index "i" on "t" ("a")'),
        ("SELECT a -> ? FROM t", 'select a->"x" from t'),
        ("PRAGMA key = ?", "pragma key = secret"),
        ("PRAGMA key = ?", 'pragma key = "a;b"'),
        ("PRAGMA key = ?", "pragma key = `a;b`"),
        ("PRAGMA main.rekey = ?", "pragma main.rekey='a;b'"),
        ("PRAGMA table_info(t)", "pragma table_info(t)"),
        ("PRAGMA hexkey(?)", "pragma hexkey(abc)"),
        ("ATTACH ? AS x KEY ?", "attach file as x key secret"),
        ("SELECT ?", "select $tag$it's 'secret'$tag$"),
        ("SELECT ?", "select $$never closed"),
        ("SELECT a FROM t ORDER BY 2 DESC", "select a from t order by 2 desc"),
        ("SELECT a FROM t GROUP BY 1, 2 LIMIT ?", "select a from t group by 1, 2 limit 10"),
        ("SELECT a FROM t ORDER BY ?", "select a from t order by 123456"),
        ("SELECT a FROM t ORDER BY 999", "select a from t order by 999"),
        ("SELECT a FROM t ORDER BY ?", "select a from t order by 1234"),
        ("CREATE TABLE t(a VARCHAR(?))", "create table t (a VARCHAR(1234))"),
        (
            "CREATE TABLE t(a VARCHAR(20), b DECIMAL(10, 2) CHECK (b > ?))",
            "create table t (a VARCHAR(20), b DECIMAL(10, 2) check (b > 5))",
        ),
        (
            "SELECT a FROM rows WHERE key = ? AND rows.no IS NULL",
            "select a from rows where key = 5 and rows.no is null",
        ),
        (
            "INSERT INTO cache(key, value) VALUES (?, ?)",
            "insert into cache (key, value) values (1, 2)",
        ),
        ("SELECT Key, Rows FROM t ORDER BY key DESC", "select Key, Rows from t order by key desc"),
        (
            "SELECT sum(a) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
            "select sum(a) over (rows between unbounded preceding and current row) from t",
        ),
        ("SELECT ?1, :a, @b, $c, $d::e(f)", "select ?1, :a, @b, $c, $d::e(f)"),
        ("SELECT t.key FROM t", "select t.key from t"),
        ("SELECT count(*) FROM t", "select count ( * ) from t"),
        ("SELECT a || b ->> ? FROM t", "select a||b->>'$.x' from t"),
        (
            "CREATE TABLE t(a); INSERT INTO t VALUES (?)",
            "create table t(a); insert into t values (1); insert into t values (2);",
        ),
        ("SELECT ?", "select 'never closed"),
        ("SELECT ?", "select 1 /* never closed"),
        ("SELECT ?", 'select "never closed'),
        ("", " ;; -- nothing"),
        ("SELECT 名 FROM 表", "select 名 from 表"),
    ],
)
def test_statement_is_what_is_left_without_literals(expected: str, sql: str) -> None:
    """Literals, comments, white space, keyword case and lengths of lists do not count."""
    assert expected == normal_form(sql)


SQL_PIECES = st.sampled_from(
    [
        "select ",
        "values ",
        "in ",
        "(",
        ")",
        ",",
        ";",
        "'",
        '"',
        "`",
        "[",
        "]",
        "--",
        "/*",
        "*/",
        "\n",
        "null",
        "1",
        "-",
        "+",
        ".",
        "e",
        "x'",
        "?",
        ":a",
        "@b",
        "$c",
        "::",
        "a",
        "é",
        "\0",
        "\ud800",
    ]
)


@given(st.lists(SQL_PIECES, max_size=60).map("".join) | st.text())
def test_never_fails_and_is_a_fixed_point_in_length(sql: str) -> None:
    """Any text has a statement, not much longer than the text, and always the same."""
    statement = normal_form(sql)
    assert statement == normal_form(sql)
    assert len(statement.encode()) <= 2 * len(sql.encode("utf-8", "backslashreplace")) + 1


@given(
    st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.lists(st.text(alphabet=string.ascii_letters + "'\"(),;- ?:"), min_size=1),
)
def test_literals_never_count(numbers: list[float], texts: list[str]) -> None:
    """An inlined statement has one normal form, whatever its values."""
    quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
    sql = (
        f"SELECT a FROM t WHERE b IN ({', '.join(map(str, numbers))}) AND c IN"
        f" ({', '.join(quoted)})"
    )
    assert normal_form(sql) == "SELECT a FROM t WHERE b IN (?) AND c IN (?)"


@given(st.lists(st.sampled_from(["a", '"b c"', "?", ":n", "1", "'s'", "NULL"]), min_size=1))
def test_statement_means_what_the_text_means(columns: list[str]) -> None:
    """SQLite still parses a statement whose literals became parameters: no words ran together."""
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t (a, "b c")')
    connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
    statement = normal_form(f"select {', '.join(columns)} from t")
    with (
        pytest.raises(sqlite3.ProgrammingError, match="bindings")
        if ("?" in statement or ":n" in statement)
        else _nothing()
    ):
        connection.execute(statement)
    connection.close()


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *exc_info: object) -> None: ...


@pytest.mark.parametrize(
    "piece", ["(", "values (1),", "in (1,", "- /* */", "'", "$a(", ":a,", "a;", "%(", "%(a"]
)
def test_time_is_linear(piece: str) -> None:
    """A text ten times as long takes about ten times as long, whatever it contains."""

    def best_ns(size: int) -> int:
        text = "select " + piece * size
        times = []
        for _ in range(5):
            started = time.thread_time_ns()  # CPU time, without waits for a processor
            normal_form(text)
            times.append(time.thread_time_ns() - started)
        return min(times)

    short, long = best_ns(20_000), best_ns(200_000)
    assert long < 60 * max(short, 20_000)


def test_a_huge_text_is_cut_at_a_character() -> None:
    """A statement keeps its first 16 KiB, and never half a character."""
    statement = normal_form("select " + ", ".join(f"é{i}" for i in range(100_000)))
    assert 16_000 < len(statement.encode()) <= 16_384
    assert "\ufffd" not in statement
