"""Each category of findings: a program with the fault, and a healthy program that looks like it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import QUERYPROF
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings.finding import CATEGORIES, SERVER_CATEGORIES, Finding, Severity
from queryprof.findings.lookup import findings_of
from queryprof.model import Frame
from queryprof.program.database_schema import read_schema
from queryprof.program.sources import Sources

pytestmark = pytest.mark.once

FOLDER = Path(__file__).parent / "findings"
NEEDS_LINES = {"many_objects"} if sys.version_info < (3, 12) else set()
"""Categories that Python 3.11 cannot find; tests/programs/test_line_findings.py tests them."""

FAULTS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.endswith("_healthy"))
HEALTHY = sorted(path.stem for path in FOLDER.glob("*_healthy.py"))

Run = Callable[..., CompletedProcess[str]]


def recorded(queryprof: Run, name: str) -> tuple[Finding, ...]:
    result = queryprof("run", "--no-report", "-o", "t.qprof", FOLDER / f"{name}.py")
    assert result.returncode == 0, result.stderr
    assert Path("t.qprof").exists(), result.stderr
    return findings_of(Report(read_profile("t.qprof")))


def test_each_category_has_both() -> None:
    assert FAULTS == sorted(CATEGORIES.keys() - SERVER_CATEGORIES)
    assert HEALTHY == sorted(f"{name}_healthy" for name in CATEGORIES.keys() - SERVER_CATEGORIES)


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in NEEDS_LINES])
def test_the_fault_is_the_first_finding(queryprof: Run, name: str) -> None:
    """The finding has the right category and line."""
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    culprit = [number for number, line in enumerate(lines, 1) if "# culprit" in line]
    found = recorded(queryprof, name)
    if name != "heavy_query":  # this finding is about the statement that makes the tables
        found = tuple(one for one in found if one.category != "heavy_query")
    assert found, "no finding at all"
    assert found[0].category == name
    assert found[0].site.frame is not None
    assert [found[0].site.frame.line] == culprit
    assert found[0].evidence
    assert found[0].fix


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_has_no_such_finding(queryprof: Run, name: str) -> None:
    """It has no severe finding of another category either."""
    found = recorded(queryprof, name)
    category = name.removesuffix("_healthy")
    assert [one for one in found if one.severity is Severity.HIGH or one.category == category] == []


@pytest.fixture(scope="module")
def slow_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace with one severe finding: its calls took ten times as long, and its run as long
    as its calls, however busy this machine is.
    """
    path = tmp_path_factory.mktemp("slow") / "t.qprof"
    command = [QUERYPROF, "run", "--no-report", "-o", path, FOLDER / "re_prepare.py"]
    subprocess.run(command, cwd=path.parent, check=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE aggregate SET self_ns = 10 * self_ns, total_ns = 10 * total_ns")
        connection.execute(
            "UPDATE process SET end_unix_ns = start_unix_ns + (SELECT sum(self_ns) FROM aggregate)"
        )
        connection.commit()
    return path


@pytest.fixture
def trace(slow_trace: Path) -> str:
    shutil.copy(slow_trace, "t.qprof")
    return "t.qprof"


@pytest.mark.slow
def test_exit_statuses(queryprof: Run, trace: str) -> None:
    assert queryprof("analyze", trace).returncode == 0
    assert queryprof("analyze", trace, "--fail-on", "high").returncode == 1
    assert queryprof("analyze", "nothing.qprof").returncode == 2
    missing = queryprof("analyze", trace, "--db", "nothing.db")
    assert missing.returncode == 2
    assert missing.stderr.startswith("queryprof: nothing.db: no such file")
    assert len(missing.stderr.splitlines()) == 1


@pytest.mark.slow
def test_another_program_s_database_is_noticed(queryprof: Run, trace: str) -> None:
    """A database that has a table of a statement is taken for the program's."""
    message = "wrong.db: lacks the tables of the recorded statements; is it the program's database?"
    table = "CREATE TABLE other (a)"
    for schema, is_reported in (
        (table, True),
        (table + "; CREATE TABLE item (id, name, price)", False),
    ):
        Path("wrong.db").unlink(missing_ok=True)
        with closing(sqlite3.connect("wrong.db")) as db:
            db.executescript(schema)
        result = queryprof("analyze", trace, "--db", "wrong.db")
        assert (message in " ".join(result.stdout.split())) == is_reported, result.stdout


def test_a_trace_without_calls_is_refused(queryprof: Run) -> None:
    queryprof("run", "-o", "empty.qprof", sys.executable, "-c", "pass")
    result = queryprof("analyze", "empty.qprof")
    assert result.returncode == 2
    assert "no database calls were recorded" in result.stderr


def test_what_one_index_serves_is_one_finding(tmp_path: Path, queryprof: Run) -> None:
    """One finding covers queries through a view and a join. The existing partial index does not
    cover all rows.
    """
    (tmp_path / "app.py").write_text(
        """
import sqlite3
db = sqlite3.connect("app.db")
db.executescript(
    "CREATE TABLE item (owner, name); CREATE TABLE owner (id INTEGER PRIMARY KEY);"
    "CREATE INDEX item_none ON item (owner) WHERE name = 'none';"
    "CREATE VIEW named AS SELECT owner AS whose, name FROM item;"
)
db.executemany("INSERT INTO item VALUES (?, ?)", ((i % 900, f"n{i}") for i in range(30_000)))
db.execute("INSERT INTO owner VALUES (7)")
db.commit()
for _ in range(20):
    db.execute("SELECT name FROM named WHERE whose = ?", (7,)).fetchall()
    db.execute("SELECT name FROM item WHERE owner = ?", (7,)).fetchall()
    db.execute("SELECT name FROM owner o JOIN item i ON i.owner = +o.id WHERE o.id = ?", (7,)).fetchall()
db.close()
"""
    )
    result = queryprof("run", "--no-report", "-o", "t.qprof", tmp_path / "app.py")
    assert result.returncode == 0, result.stderr
    found = findings_of(Report(read_profile("t.qprof")))
    scans = [one for one in found if one.category == "full_scan"]
    assert [one.code for one in scans] == ["CREATE INDEX item_owner ON item (owner);"]
    assert "the fix also helps 2 other statements" in scans[0].evidence[-1]
    assert "index_defeated" not in [one.category for one in found]


@pytest.mark.slow
def test_accepted_findings_are_silent(queryprof: Run, trace: str) -> None:
    """Each has a reason. Entries that are no longer findings are listed."""
    (found,) = findings_of(Report(read_profile(trace)))[:1]
    Path("queryprof.toml").write_text(
        f'accepted = [{{ finding = "{found.identity}", reason = "a test" }},'
        ' { finding = "n_plus_one-00000000", reason = "gone" }]\n'
    )
    result = queryprof("analyze", trace, "--fail-on", "high")
    assert result.returncode == 0
    assert found.identity not in result.stdout
    assert "in `accepted`, but no longer found: n_plus_one-00000000" in result.stdout
    document = json.loads(queryprof("analyze", trace, "--format", "json").stdout)
    assert [one["is_stale"] for one in document["accepted"]] == [False, True]
    Path("queryprof.toml").write_text('accepted = ["n_plus_one"]')
    wrong = queryprof("analyze", trace)
    assert wrong.returncode == 2
    assert 'write accepted = [{ finding = "n_plus_one-12345678", reason = "why" }]' in wrong.stderr


def test_markdown_and_github(queryprof: Run, trace: str) -> None:
    assert queryprof("analyze", trace, "--format", "markdown").stdout.startswith("### 1. ")
    line = queryprof("analyze", trace, "--format", "github").stdout.splitlines()[0]
    level = line.partition(" file=")[
        0
    ]  # by the time that it saves, which is shorter on a fast machine
    assert level in ("::error", "::warning", "::notice")
    assert "line=9,title=queryprof re_prepare::" in line


def test_identities_do_not_depend_on_lines(queryprof: Run, tmp_path: Path) -> None:
    """They do not depend on the folder either."""
    program = (FOLDER / "re_prepare.py").read_text()
    identities = set()
    for number, text in enumerate((program, "\n\n\n" + program)):
        (tmp_path / str(number)).mkdir()
        path = tmp_path / str(number) / "program.py"
        path.write_text(text)
        queryprof("run", "--no-report", "-o", "t.qprof", path)
        identities.add(findings_of(Report(read_profile("t.qprof")))[0].identity)
    assert len(identities) == 1


def test_what_a_trace_names_is_read_without_a_trace_of_it(tmp_path: Path) -> None:
    """No pipe is waited for, no warning about the program's source is printed, and no file is
    created.
    """
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "odd.py").write_text("for number in range(3):\n    print('\\d')\n")
    files = [tmp_path / "pipe.py", tmp_path / "odd.py"]
    digest = sha256(files[1].read_bytes()).hexdigest()
    loop_at = Sources({str(path): {digest} for path in files}).loop_at
    assert loop_at(Frame("f", str(tmp_path / "pipe.py"), 1)) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loop_at(Frame("<module>", str(tmp_path / "odd.py"), 2)) is not None
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("CREATE INDEX t_a ON t (a)")
    connection.close()
    files = sorted(tmp_path.iterdir())
    assert [index.name for index in read_schema(str(tmp_path / "t.db")).indexes] == ["t_a"]
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.slow
def test_views_that_are_tables_alone(queryprof: Run, trace: str) -> None:
    """The error is one line with exit status 2, not a traceback."""
    for options in (["--show", "tree"], ["--show", "locks"], ["--show", "slowest"]):
        assert queryprof("report", trace, *options).returncode == 0
        result = queryprof("report", trace, *options, "--format", "json")
        assert result.returncode == 2
        assert "is only a table" in result.stderr


def test_locks_prints_the_same_table_as_report(queryprof: Run, trace: str) -> None:
    result = queryprof("report", trace, "--show", "locks")
    assert result.returncode == 0
    assert queryprof("locks", trace).stdout == result.stdout


def test_a_view_goes_with_json_and_with_no_breakdown(queryprof: Run, trace: str) -> None:
    result = queryprof("report", trace, "--show", "tree", "--by", "span")
    assert result.returncode == 2
    assert "--show and --by cannot be combined" in result.stderr
    for form, status in (("json", 0), ("markdown", 2)):
        assert queryprof("report", trace, "--show", "loops", "--format", form).returncode == status
