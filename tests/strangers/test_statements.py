"""Untrusted SQL reaches only the copy on which it is executed."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of
from queryprof.model import Plan
from queryprof.planner.judging import BEFORE, Judge, StatementError
from queryprof.report.findings.sarif import findings_sarif
from queryprof.report.json.findings import findings_json
from queryprof.report.places import Places
from queryprof.report.terminal.findings import print_findings

pytestmark = pytest.mark.once

LIBRARIES = ["sqlite3", *(["apsw"] if importlib.util.find_spec("apsw") else [])]

REFUSED = (
    "ATTACH '{0}/other.db' AS v",
    "ATTACH '{0}/' || 'written.db' AS v",
    "VACUUM INTO '{0}/written.db'",
    "EXPLAIN ATTACH '{0}/other.db' AS v",
    "DETACH main",
    "SELECT load_extension('{0}/x.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('{0}/written.db', 'x')",
    "SELECT fts3_tokenizer('simple')",
    "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')",
    "PRAGMA temp_store_directory = '{0}'",
    "PRAGMA data_store_directory = '{0}'",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 7",
    "PRAGMA schema_version = 7",
    "SELECT 1; ATTACH '{0}/other.db' AS v; DELETE FROM v.t",
    "SELECT 1; VACUUM INTO '{0}/written.db'",
    "SELECT 1; SELECT 2",
    "; -- nothing\n SELECT 1; DELETE FROM t",
)

ALLOWED = (
    "SELECT count(*) FROM t -- ; ATTACH 'x' AS y",
    "SELECT ';' FROM t; ",
    "SELECT a FROM t; -- and; more\n/* ; */",
    "PRAGMA table_info(t)",
    "SELECT * FROM pragma_index_list('t')",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CREATE TEMP TABLE u AS SELECT * FROM t",
    "CREATE TABLE w (a); ",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; SELECT 1; END",
    "INSERT INTO t VALUES (1) RETURNING a",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT * FROM n",
    "SELECT * FROM json_each('[1]')",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
)


ODD = (
    "\0",
    "SELECT\0a FROM t WHERE b = ?",
    "CREATE TABLE t (a, b); SELECT '\0'; DROP TABLE t",
    "CREATE\0TABLE t (a);",
    "CREATE TABLE t (a, b);\0",
    "SELECT a FROM t WHERE b = '\ud800' ORDER BY c",
    "CREATE TABLE \udcff (a); SELECT 1",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN" + ";" * 500,
    "CREATE" + "(" * 20_000,
    "SELECT a FROM t WHERE" + " (" * 5_000,
    "INSERT INTO t VALUES " + "(?)," * 20_000,
    "UPDATE t SET a = \u202e WHERE b = ?",
    "DELETE FROM t WHERE a = ?\r\n;",
    "CREATE TABLE t (a, b)",
    "CREATE INDEX i ON t (a); \ud800",
    "",
    " ",
    ";",
    "--",
    "/*",
    "'",
    '"',
    "[",
    "?" * 40_000,
)
"""Texts that no database would accept, and some that one would."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    for name in ("t.db", "other.db"):
        db = sqlite3.connect(tmp_path / name)
        db.execute("CREATE TABLE t (a)")
        db.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(10)])
        db.commit()
        db.close()
    return tmp_path / "t.db"


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_judge_refuses_what_reaches_further(database: Path, library: str) -> None:
    """It refuses the text in any request, and continues."""
    place = database.parent
    with Judge(library=library) as judge:
        judge.copy_database(f"{database.as_uri()}?mode=ro", BEFORE)
        for text in REFUSED:
            sql = text.format(place)
            before = {path: path.read_bytes() for path in place.iterdir()}
            with pytest.raises(StatementError, match=r"refused: |one statement|no such function"):
                judge.execute(BEFORE, sql)
            with pytest.raises(StatementError):
                judge.rows(BEFORE, sql)
            with suppress(StatementError):  # a plan is made, and nothing is executed
                judge.plan(BEFORE, sql)
            with pytest.raises(StatementError):
                judge.measure([BEFORE], sql, (), False, 1, 0)
            assert {path: path.read_bytes() for path in place.iterdir()} == before
            assert judge.rows(BEFORE, "SELECT count(*) FROM t") == [(10,)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.repeats
def test_the_judge_executes_what_stays(database: Path, library: str) -> None:
    for sql in ALLOWED:
        with Judge(library=library) as judge:
            judge.copy_database(f"{database.as_uri()}?mode=ro", BEFORE)
            judge.rows(BEFORE, sql)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_value_is_bounded(database: Path, library: str) -> None:
    """SQLite cannot be interrupted while it makes one."""
    with Judge(library=library) as judge:
        judge.copy_database(f"{database.as_uri()}?mode=ro", BEFORE)
        with pytest.raises(StatementError, match="too big"):
            judge.rows(BEFORE, "SELECT length(hex(randomblob(400000000)))")


def test_planning_executes_nothing(database: Path) -> None:
    """The statements of a trace are also prepared in the command's own process."""
    pytest.importorskip("apsw")
    from queryprof.proof.accesses import Accesses, NotPrepared
    from queryprof.proof.schema import DatabaseSchema

    view = (
        f"CREATE VIEW v AS SELECT 1; ATTACH '{database.parent}/written.db' AS w; CREATE TABLE"
        " w.t (a)"
    )
    accesses = Accesses(DatabaseSchema((), (view,), (), frozenset()))
    for text in REFUSED:
        with suppress(NotPrepared):  # VACUUM has a plan
            accesses.accesses_of(text.format(database.parent))
    accesses.close()
    assert sorted(path.name for path in database.parent.iterdir()) == ["other.db", "t.db"]


@pytest.mark.parametrize("known", [True, False], ids=["schema", "no schema"])
@pytest.mark.repeats
def test_findings_of_odd_texts(database: Path, known: bool) -> None:
    """Each is read, planned, rewritten and shown, or skipped, without effect on the others."""
    scan = aggregate("SELECT a FROM t WHERE a = ?", ns=10**8, count=100)
    ns = 10**7
    odd = [aggregate(text, ns=ns, count=50)._replace(full_scan_steps=5000) for text in ODD]
    plans = tuple(Plan(text, "", "SCAN t") for text in (scan.statement, *ODD))
    sums = (scan._replace(full_scan_steps=10**6, vm_steps=10**7), *odd)
    report = Report(replace(profile_of(*sums), plans=plans))
    found = findings_of(report, [str(database)] if known else [])
    assert "full_scan" in {one.category for one in found if one.statement == scan.statement}
    for text in (findings_json(found, (), ()), findings_sarif(found, Places(report.profile))):
        json.loads(text)
    print_findings(found, Places(report.profile), (), (), 99, StringIO())
