"""Values in the SQL of other databases, whose quotes differ from SQLite's, are not in the trace."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import pytest

import queryprof

pytestmark = pytest.mark.once

ODD_DRIVER = """
class Cursor:
    def execute(self, sql, parameters=()):
        if "refused" in sql:
            raise ValueError("no such column: it")
"""


@pytest.mark.parametrize(
    "text",
    [
        r"SELECT 'it\'s, {}'",
        r"SELECT 'a\\', 'it\'s {}'",
        r'SELECT "it\"s {}"',
        "SELECT a # {}",
        "SELECT /* a /* b */ {} */ 1",
        r"SELECT E'it\'s {}'",
        r"SELECT refused, 'it\'s {}'",
        r"SELECT e'\\\'{}', refused",
        "SELECT refused /* a /* b */ {} */",
        "SELECT 5--'a\n{}'",
        'SELECT 5--"a\n{}" + 1',
        "SELECT /*! 'a */ {}' */ + 1",
        "SELECT /*M! 'a */ {}' */ + 1",
        "SELECT 'a' \"{}\"",
        "SELECT 'a' /* b */ \"{}\" FROM t",
    ],
)
@pytest.mark.repeats
def test_other_databases_quote_otherwise(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an unknown database, nothing is shown that may be a value in any database."""
    (tmp_path / "odd_driver.py").write_text(ODD_DRIVER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_driver", raising=False)
    queryprof.instrument("odd_driver", cursors=["Cursor"])
    odd_driver = importlib.import_module("odd_driver")
    with queryprof.profile(tmp_path / "s.qprof"):
        for sql in (text, "SELECT shown FROM t"):
            with contextlib.suppress(ValueError):
                odd_driver.Cursor().execute(sql.replace("{}", "Hush"))
    trace = (tmp_path / "s.qprof").read_bytes()
    assert b"Hush" not in trace
    assert b"SELECT shown FROM t" in trace


def test_postgresql_quotes_otherwise(tmp_path: Path) -> None:
    """Its E'' strings have backslashes, and its comments nest."""
    psycopg = pytest.importorskip("psycopg")
    texts = (
        r"SELECT E'it\'s Hush', e'\\', b",
        "SELECT /* a /* b */ Hush */ 1 FROM two",
        r"SELECT 'a\', b",
        "SELECT E'a'\n'it\\'s Hush', b",
    )
    with queryprof.profile(tmp_path / "s.qprof") as recording:
        for text in texts:
            with contextlib.suppress(AttributeError):
                psycopg.Cursor.execute(object(), text)
    assert b"Hush" not in (tmp_path / "s.qprof").read_bytes()
    assert sum(a.count for a in recording.profile.aggregates) == len(texts)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT E'it\\'s' AS b", "SELECT ? AS b"),
        ("SELECT 'C:\\', 'Hush' AS b", "SELECT ?, ? AS ?"),
        ("SELECT 'C:\\dir', 'Hush' AS b", "SELECT ?, ? AS b"),
    ],
)
@pytest.mark.repeats
def test_duckdb_quotes_as_postgresql_does(text: str, form: str, tmp_path: Path) -> None:
    """With a setting of PostgreSQL's, a backslash before the closing quote does not end the
    text.
    """
    duckdb = pytest.importorskip("duckdb")
    with queryprof.profile(tmp_path / "s.qprof") as recording:
        duckdb.execute(text).fetchall()
    assert b"Hush" not in (tmp_path / "s.qprof").read_bytes()
    assert form in {a.statement for a in recording.profile.aggregates}
