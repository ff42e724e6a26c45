"""The pytest plugin from outside: complete pytest runs on small suites."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run, baseline, suite

pytestmark = pytest.mark.once

run = pytest_runs.run


@pytest.mark.usefixtures("installed_plugins")
@pytest.mark.slow
def test_off_by_default() -> None:
    """Without an option, the plugin imports, records and prints nothing."""
    Path("test_a.py").write_text(
        "import sys\n"
        "def test_off():\n"
        "    assert not [m for m in sys.modules if m.startswith('queryprof') and m not in\n"
        "                ('queryprof', 'queryprof.hooks', 'queryprof.pytest_plugin')]\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert "queryprof" not in result.stdout


def test_the_summary_names_the_tests_that_ask_most(run: Run) -> None:
    """It shows executions of the test and of its fixtures separately, and repeated statements with
    their line.
    """
    suite(times=25)
    result = run("--queryprof")
    assert result.returncode == 0, result.stdout
    assert "25  (+4)  test_suite.py::test_load" in result.stdout
    assert "25 x SELECT a FROM t WHERE b = ?" in result.stdout
    assert "test_suite.py:16  in test_suite.py::test_load" in result.stdout


def test_a_baseline_holds_each_tests_queries(run: Run) -> None:
    """Parametrized tests are separate; fixtures and tests without queries are missing. The next run
    saves the same file.
    """
    suite()
    assert run("--queryprof-save").returncode == 0
    tests = baseline()
    assert sorted(tests) == [
        "test_suite.py::test_load",
        "test_suite.py::test_nothing",
        "test_suite.py::test_one[1]",
        "test_suite.py::test_one[2]",
    ]
    assert tests["test_suite.py::test_nothing"] == {}
    (statement,) = tests["test_suite.py::test_load"]
    assert statement == "SELECT a FROM t WHERE b = ?"
    assert tests["test_suite.py::test_load"][statement]["executions"] == 5
    first = Path("queryprof-baseline.json").read_bytes()
    run("--queryprof-save")
    assert Path("queryprof-baseline.json").read_bytes() == first


@pytest.mark.parametrize(
    ("changes", "failed", "reported"),
    [
        ({"times": 6}, {"test_load"}, "executions 5 -> 6"),
        (
            {"index": ""},
            {"test_load", "test_one[1]", "test_one[2]"},
            "t USING COVERING INDEX i (b=?), now SCAN t: is the index gone",
        ),
        ({"column": "b + 0"}, {"test_load", "test_one[1]", "test_one[2]"}, "a new statement"),
        (
            {"extra": 'db.execute("SELECT 1 FROM t LIMIT 1")'},
            {"test_one[1]", "test_one[2]"},
            "a new statement",
        ),
        ({"extra": "db.commit()"}, {"test_one[1]", "test_one[2]"}, "COMMIT"),
    ],
)
@pytest.mark.repeats
def test_what_is_worse_fails(
    run: Run, changes: dict[str, object], failed: set[str], reported: str
) -> None:
    """The failure has the statement, the figures before and after, and the line of the query."""
    suite()
    run("--queryprof-save")
    suite(**changes)
    result = run("--queryprof-check", "-rf")
    assert result.returncode == 1
    lines = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    assert {line.split("::")[1].split(" ")[0] for line in lines} == failed
    assert reported in result.stdout
    assert "test_suite.py:" in result.stdout


@pytest.mark.parametrize(
    "changes",
    [{}, {"column": "/* hint */ b"}, {"extra": 'db.execute("SAVEPOINT s")'}],
)
@pytest.mark.repeats
def test_what_is_harmless_passes(run: Run, changes: dict[str, object]) -> None:
    """It passes a second run, reformatted SQL, and statements that frameworks add."""
    suite()
    run("--queryprof-save")
    suite(**changes)
    result = run("--queryprof-check")
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_a_cause_of_many_tests_is_printed_once(run: Run) -> None:
    """It is in the summary, with the plans. Each test's own text is short."""
    suite()
    run("--queryprof-save")
    suite(index="")
    for options in ((), ("-n", "2")):
        result = run("--queryprof-check", *options)
        failures, _, summary = result.stdout.partition("= queryprof =")
        assert failures.count("a worse plan, VM steps") == 3  # the first line has only the reasons
        assert "plan was" not in failures
        assert "In 3 tests (test_suite.py::test_load ... test_one[2]): SELECT a FROM t" in summary
        assert summary.count("plan now  SCAN t") == 1
        assert summary.count("to accept this, run pytest --queryprof-save") == 1
    suite(column="b + 0")
    summary = run("--queryprof-check").stdout.partition("= queryprof =")[2]
    assert "its plan  SCAN t" in summary
    assert "no longer executed: SELECT a FROM t WHERE b = ?" in summary


@pytest.mark.slow
def test_more_rows_may_come_from_another_test(run: Run) -> None:
    """The order of tests may change."""
    suite()
    run("--queryprof-save")
    text = Path("test_suite.py").read_text().replace("i % 50", "i % 49")
    Path("test_suite.py").write_text(text)
    assert "or did another test" not in run("--queryprof-check").stdout
    assert "or did another test" in run("--queryprof-check", "-n", "2").stdout


def test_a_check_prints_what_it_compared(run: Run) -> None:
    """It shows the number of tests and of worse tests. Pytest's last lines have the reason."""
    suite()
    run("--queryprof-save")
    result = run("--queryprof-check")
    assert "4 tests compared with the baseline: none are worse" in result.stdout
    suite(times=7, index="")
    result = run("--queryprof-check", "-rf")
    assert "4 tests compared with the baseline: 3 are worse" in result.stdout
    assert "test_suite.py::test_load - Failed: does more database work than its" in result.stdout
    assert "the baseline has" not in result.stdout


def test_only_the_listing_lists_all_tests(run: Run) -> None:
    suite()
    for option, is_listed in (("--queryprof", True), ("--queryprof-save", False)):
        assert ("most executions" in run(option).stdout) == is_listed
    assert "most executions" not in run("--queryprof-check").stdout


@pytest.mark.parametrize("key", ["python_version", "sqlite_version"])
@pytest.mark.repeats
def test_a_baseline_of_another_version_may_be_why(run: Run, key: str) -> None:
    """It is mentioned if a test fails. Statements executed by a Python library also differ between
    versions.
    """
    suite()
    run("--queryprof-save")
    path = Path("queryprof-baseline.json")
    path.write_text(re.sub(f'"{key}": ".*"', f'"{key}": "3.1"', path.read_text()))
    assert "the baseline has" not in run("--queryprof-check").stdout
    suite(times=7)
    what = {"python_version": "Python", "sqlite_version": "SQLite"}[key]
    assert f"the baseline has {what} 3.1, but this run has " in run("--queryprof-check").stdout
    path.write_text(re.sub(r' "python_version": ".*",\n', "", path.read_text()))
    assert "the baseline has Python" not in run("--queryprof-check").stdout


def test_improvements_pass_and_show_how_to_accept_them(run: Run) -> None:
    """One command accepts it."""
    suite()
    run("--queryprof-save")
    suite(times=3)
    result = run("--queryprof-check")
    assert result.returncode == 0
    assert "1 test better than the baseline; update the baseline with" in result.stdout
    run("--queryprof-save")
    assert "ask less" not in run("--queryprof-check").stdout


def test_saving_a_part_keeps_the_rest(run: Run) -> None:
    """Deselected tests, other files and failed tests keep their figures; removed tests
    are dropped.
    """
    suite()
    suite("test_other.py")
    run("--queryprof-save")
    suite(times=7, extra="assert False")
    run("--queryprof-save", "test_suite.py", "-k", "load or one")
    tests = baseline()
    assert tests["test_suite.py::test_load"]["SELECT a FROM t WHERE b = ?"]["executions"] == 7
    assert "test_suite.py::test_one[1]" in tests
    assert "test_other.py::test_load" in tests
    text = Path("test_other.py").read_text().replace("def test_load", "def test_renamed")
    Path("test_other.py").write_text(text)
    run("--queryprof-save", "test_other.py")
    assert "test_other.py::test_load" not in baseline()


def test_the_fixture(run: Run) -> None:
    """It has the counts so far, and a block with its own limit."""
    Path("test_a.py").write_text(
        "import contextlib, sqlite3\n"
        "def test_count(queryprof):\n"
        "    c = sqlite3.connect(':memory:')\n"
        "    c.execute('SELECT 1').fetchall()\n"
        "    assert queryprof.count() == queryprof.count('SELECT') == 1\n"
        "    c.execute('CREATE TABLE t (a)')\n"
        "    assert (queryprof.count(), queryprof.count('CREATE')) == (2, 1)\n"
        "    assert queryprof.queries['SELECT ?'].rows == 1\n"
        "    with queryprof.at_most(1):\n"
        "        c.execute('SELECT 2')\n"
        "    c.close()\n"
        "def test_at_most(queryprof):\n"
        "    with contextlib.closing(sqlite3.connect(':memory:')) as c, queryprof.at_most(1):\n"
        "        for i in range(2): c.execute('SELECT 1')\n"
    )
    result = run()
    assert (result.returncode, "1 failed, 1 passed" in result.stdout) == (1, True), result.stdout
    assert "over the limit: 2 queries, queries=1:\n" in result.stdout
    assert "test_a.py:14" in result.stdout


def test_unittest_classes(run: Run) -> None:
    """Their setUp and tearDown belong to the test, because pytest runs them inside it."""
    Path("test_a.py").write_text(
        "import sqlite3, unittest\n"
        "class TestA(unittest.TestCase):\n"
        "    def test_x(self):\n"
        "        c = sqlite3.connect(':memory:')\n"
        "        c.execute('SELECT 1').fetchall()\n"
        "        c.close()\n"
    )
    assert run("--queryprof-save").returncode == 0
    figures = baseline()["test_a.py::TestA::test_x"]["SELECT ?"]
    assert (figures["executions"], figures["rows"]) == (1, 1)


@pytest.mark.slow
def test_workers_of_xdist(run: Run) -> None:
    """Workers check; the first process sums up, and saves the same baseline."""
    pytest.importorskip("xdist")
    suite()
    run("--queryprof-save")
    alone = Path("queryprof-baseline.json").read_bytes()
    assert run("--queryprof-save", "-n", "2").returncode == 0
    assert Path("queryprof-baseline.json").read_bytes() == alone
    suite(times=6)
    result = run("--queryprof-check", "-n", "2")
    assert result.returncode == 1
    assert "more executions" in result.stdout


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (None, "there is no baseline yet"),
        ("{}", "not a queryprof baseline"),
        ('{"format_version": 99, "sqlite_version": "3", "tests": {}}', "has format 99"),
        ("<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n", "merge conflict"),
        ('{"format_version": 1,', "not valid JSON"),
    ],
)
@pytest.mark.repeats
def test_a_bad_baseline_is_one_line(run: Run, text: str | None, reported: str) -> None:
    """The message says what to do, without a traceback."""
    suite()
    if text is not None:
        Path("queryprof-baseline.json").write_text(text)
    result = run("--queryprof-check")
    assert result.returncode == 4
    (line,) = [line for line in result.stderr.splitlines() if line]
    assert line.startswith("ERROR: queryprof: ")
    assert reported in line


def test_a_baseline_that_cannot_be_written_fails(run: Run) -> None:
    """One line says so, below the tests' own results."""
    suite()
    Path("pytest.ini").write_text("[pytest]\nqueryprof_baseline = nowhere/b.json\n")
    result = run("--queryprof-save")
    assert result.returncode == 1
    assert "nowhere/b.json: cannot be written: No such file or directory" in result.stdout
    assert "4 passed" in result.stdout
    assert "INTERNALERROR" not in result.stdout + result.stderr


def test_a_gate_that_measured_nothing_fails(run: Run) -> None:
    """Tests whose queries are no longer recorded have not improved."""
    suite()
    run("--queryprof-save")
    suite()
    text = Path("test_suite.py").read_text().replace("load(db, x)", "[1]")
    Path("test_suite.py").write_text(text)
    result = run("--queryprof-check")
    assert result.returncode == 1
    assert "this check checked nothing" in result.stdout


def test_settings(run: Run) -> None:
    """Settings of pytest choose which checks fail, and which statements are ignored."""
    suite()
    run("--queryprof-save")
    suite(times=6, extra='db.execute("PRAGMA user_version")')
    ini = Path("pytest.ini")
    ini.write_text("[pytest]\nqueryprof_fail_on = vmsteps\nqueryprof_ignore =\n    PRAGMA\n")
    assert "more VM steps" in run("--queryprof-check").stdout
    ini.write_text(
        "[pytest]\nqueryprof_fail_on = counts\nqueryprof_ignore =\n    PRAGMA\n    SELECT\n"
    )
    result = run("--queryprof-check")
    assert (result.returncode, "ask less" in result.stdout) == (0, False), "nothing is left"
    ini.write_text("[pytest]\nqueryprof_fail_on = everything\n")
    result = run("--queryprof-check")
    assert (
        result.returncode,
        "unknown; use counts, full_scan, n_plus_one, plans" in result.stderr,
    ) == (
        4,
        True,
    )


def test_a_test_that_ends_the_recording_fails_nothing(pytester: pytest.Pytester) -> None:
    """Its later queries are not counted. The next test is recorded."""
    pytester.makepyfile("""
        import sqlite3
        import queryprof

        def ask():
            db = sqlite3.connect(":memory:")
            db.execute("SELECT 1").fetchall()
            db.close()

        def test_that_ends_it():
            ask()
            queryprof.uninstall()
            ask()

        def test_after_it():
            ask()
        """)
    result = pytester.runpytest_subprocess("--queryprof")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*1  (+0)  *::test_after_it"])
