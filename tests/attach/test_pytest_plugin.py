"""The pytest plugin, seen from outside: whole pytest runs over small suites."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SUITE = """
import sqlite3
import pytest

@pytest.fixture
def db():
    c = sqlite3.connect(":memory:")
    c.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    {index}
    c.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 50) for i in range(2000)])
    c.commit()
    yield c
    c.close()

def load(c, x):
    return c.execute("SELECT a FROM t WHERE {column} = ?", (x,)).fetchall()

def test_load(db):
    for x in range({times}):
        load(db, x)

@pytest.mark.parametrize("x", [1, 2])
def test_one(db, x):
    assert load(db, x)
    {extra}

def test_nothing():
    pass
"""
CREATE_INDEX = 'c.execute("CREATE INDEX i ON t (b)")'


def suite(name: str = "test_suite.py", **changes: object) -> None:
    values = {"index": CREATE_INDEX, "column": "b", "times": 5, "extra": "", **changes}
    Path(name).write_text(SUITE.format(**values))


class Result:
    """How a pytest run ended."""

    def __init__(self, returncode: int, stdout: str, stderr: str) -> None:
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


Run = Callable[..., Result]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest inside this process, in an empty directory."""
    monkeypatch.chdir(pytester.path)
    # A file that changes within a second and keeps its size would be run from its old bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*arguments: str) -> Result:
        linecache.clearcache()
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:asyncio")
        result = pytester.runpytest_inprocess(*plain, *arguments)
        return Result(int(result.ret), result.stdout.str(), result.stderr.str())

    return run


def baseline() -> dict[str, dict[str, dict[str, int]]]:
    document = json.loads(Path("queryprof-baseline.json").read_text())
    tests: dict[str, dict[str, dict[str, int]]] = document["tests"]
    return tests


@pytest.mark.usefixtures("installed_plugins")
def test_off_unless_asked() -> None:
    """Without an option nothing is imported, recorded or printed."""
    Path("test_a.py").write_text(
        "import sys\n"
        "def test_off():\n"
        "    assert not [m for m in sys.modules if m.startswith('queryprof') and m not in\n"
        "                ('queryprof', 'queryprof.hooks', 'queryprof.hooks.pytest_plugin')]\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert "queryprof" not in result.stdout


def test_the_summary_names_the_tests_that_ask_most(run: Run) -> None:
    """Executions of the call and of its fixtures apart, and repeated statements with their line."""
    suite(times=25)
    result = run("--queryprof")
    assert result.returncode == 0, result.stdout
    assert "25  (+4)  test_suite.py::test_load" in result.stdout
    assert "25 x SELECT a FROM t WHERE b = ?" in result.stdout
    assert "test_suite.py:16  in test_suite.py::test_load" in result.stdout


def test_a_baseline_holds_what_each_test_asks(run: Run) -> None:
    """Parametrised tests apart, fixtures left out, nothing of tests that ask nothing; and the
    same file in the next run.
    """
    suite()
    assert run("--queryprof-save").returncode == 0
    tests = baseline()
    assert sorted(tests) == [
        "test_suite.py::test_load", "test_suite.py::test_one[1]", "test_suite.py::test_one[2]",
    ]  # fmt: skip
    (statement,) = tests["test_suite.py::test_load"]
    assert statement == "SELECT a FROM t WHERE b = ?"
    assert tests["test_suite.py::test_load"][statement]["executions"] == 5
    first = Path("queryprof-baseline.json").read_bytes()
    run("--queryprof-save")
    assert Path("queryprof-baseline.json").read_bytes() == first


@pytest.mark.parametrize(
    ("changes", "failed", "told"),
    [
        ({"times": 6}, {"test_load"}, "executions 5 -> 6"),
        ({"index": ""}, {"test_load", "test_one[1]", "test_one[2]"}, "t USING COVERING INDEX i (b=?), now SCAN t: is the index gone"),
        ({"column": "b + 0"}, {"test_load", "test_one[1]", "test_one[2]"}, "a new statement"),
        ({"extra": 'db.execute("SELECT 1 FROM t LIMIT 1")'}, {"test_one[1]", "test_one[2]"},
         "a new statement"),
        ({"extra": "db.commit()"}, {"test_one[1]", "test_one[2]"}, "COMMIT"),
    ],
)  # fmt: skip
def test_what_is_worse_fails(
    run: Run, changes: dict[str, object], failed: set[str], told: str
) -> None:
    """With the statement, before and after, and the line that asks."""
    suite()
    run("--queryprof-save")
    suite(**changes)
    result = run("--queryprof-check", "-rf")
    assert result.returncode == 1
    lines = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    assert {line.split("::")[1].split(" ")[0] for line in lines} == failed
    assert told in result.stdout
    assert "test_suite.py:" in result.stdout


@pytest.mark.parametrize(
    "changes",
    [{}, {"column": "/* hint */ b"}, {"extra": 'db.execute("SAVEPOINT s")'}],
)
def test_what_is_harmless_passes(run: Run, changes: dict[str, object]) -> None:
    """The same again, SQL written otherwise, what frameworks add."""
    suite()
    run("--queryprof-save")
    suite(**changes)
    result = run("--queryprof-check")
    assert result.returncode == 0, result.stdout


RANDOM_SUITE = """
import random, sqlite3, string, uuid

import pytest

@pytest.fixture(scope="session")
def table():
    return "t" + uuid.uuid4().hex

@pytest.fixture
def c():
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()

def make(c, table):
    c.execute(f"CREATE TABLE {table} (a, b)")
    c.execute(f"INSERT INTO {table} VALUES (1, 2)")
    c.execute(f"CREATE INDEX {table}_a ON {table} (a)")
    return c.execute(f"SELECT rowid FROM {table} WHERE {column} = 1").fetchall()

def test_hex(c, table):
    make(c, table)

def test_letters(c):
    make(c, "".join(random.choices(string.ascii_lowercase, k=10)))

def test_several(c):
    for _ in range(3):
        make(c, "tmp_" + uuid.uuid4().hex)
    assert {extra} is not None
"""


def random_suite(column: str = "a", extra: str = "c") -> None:
    text = RANDOM_SUITE.replace("{column}", column).replace("{extra}", extra)
    Path("test_random.py").write_text(text)


def test_random_names_are_the_same_statement_in_each_run(run: Run) -> None:
    """Those that can be seen to be random, and those that differ in nothing but names."""
    random_suite()
    run("--queryprof-save")
    tests = baseline()
    assert "SELECT rowid FROM t<random> WHERE a = ?" in tests["test_random.py::test_hex"]
    several = tests["test_random.py::test_several"]
    assert several["SELECT rowid FROM tmp_<random> WHERE a = ?"]["executions"] == 3
    for _ in range(3):
        result = run("--queryprof-check")
        assert result.returncode == 0, result.stdout
        assert "ask less" not in result.stdout
    random_suite(column="b")
    result = run("--queryprof-check")
    assert "3 failed" in result.stdout
    assert "SCAN t<random>: is the index gone" in result.stdout


@pytest.mark.once
def test_a_cause_of_many_tests_is_told_once(run: Run) -> None:
    """In the summary, with the plans; each test's own text is short."""
    suite()
    run("--queryprof-save")
    suite(index="")
    for options in ((), ("-n", "2")):
        result = run("--queryprof-check", *options)
        failures, _, summary = result.stdout.partition("= queryprof =")
        assert failures.count("a worse plan") == 3
        assert "plan was" not in failures
        assert "In 3 tests (test_suite.py::test_load ... test_one[2]): SELECT a FROM t" in summary
        assert summary.count("plan now  SCAN t") == 1
        assert summary.count("accept it: pytest --queryprof-save") == 1
    suite(column="b + 0")
    summary = run("--queryprof-check").stdout.partition("= queryprof =")[2]
    assert "its plan  SCAN t" in summary
    assert "no longer asked: SELECT a FROM t WHERE b = ?" in summary


@pytest.mark.once
def test_more_rows_may_come_from_another_test(run: Run) -> None:
    """Where the order of tests changes."""
    suite()
    run("--queryprof-save")
    text = Path("test_suite.py").read_text().replace("i % 50", "i % 49")
    Path("test_suite.py").write_text(text)
    assert "or did another test" not in run("--queryprof-check").stdout
    assert "or did another test" in run("--queryprof-check", "-n", "2").stdout


UNSTABLE = """
import os, sqlite3

def test_stable(tmp_path):
    c = sqlite3.connect(tmp_path / "x.db")
    c.execute("SELECT 1").fetchall()
    c.close()

def test_unstable():
    c = sqlite3.connect(":memory:")
    for _ in range({times}):
        c.execute("SELECT 2").fetchall()
    c.close()
"""


@pytest.mark.once
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_verification_names_what_is_not_stable(run: Run, options: tuple[str, ...]) -> None:
    """By running the tests a second time; the baseline is that of the first run."""
    text = UNSTABLE.replace("range({times})", "range(count())").replace(
        "def test_stable",
        "def count():\n"
        "    with open('count', 'a+') as f:\n"
        "        f.write('x')\n"
        "    return os.path.getsize('count')\n"
        "def test_stable",
    )
    Path("test_a.py").write_text(text)
    result = run("--queryprof-save", "--queryprof-verify", *options)
    assert result.returncode == 1
    assert "In test_a.py::test_unstable: SELECT ?" in result.stdout
    assert "another number of executions" in result.stdout
    assert "1 tests ask something else in a second run" in result.stdout
    assert baseline()["test_a.py::test_unstable"]["SELECT ?"]["executions"] == 1


@pytest.mark.once
def test_what_is_stable_is_verified(run: Run) -> None:
    """Also beside a test that is left out."""
    Path("test_a.py").write_text(UNSTABLE.replace("{times}", "3"))
    result = run("--queryprof-save", "--queryprof-verify")
    assert result.returncode == 0, result.stdout
    assert "a second run asked the same: 2 tests are stable" in result.stdout
    text = UNSTABLE.replace("range({times})", "range(__import__('random').randrange(100))")
    text = text.replace(
        "def test_unstable", "@pytest.mark.queryprof(baseline=False)\ndef test_unstable"
    )
    Path("test_a.py").write_text("import pytest\n" + text)
    assert run("--queryprof-save", "--queryprof-verify").returncode == 0
    assert list(baseline()) == ["test_a.py::test_stable"]
    result = run("--queryprof-check")
    assert (result.returncode, "not in the baseline" in result.stdout) == (0, False)


@pytest.mark.once
def test_verification_that_cannot_run_says_so(run: Run) -> None:
    """With what the second run printed; and it needs a baseline to verify."""
    Path("test_a.py").write_text(
        UNSTABLE.replace("{times}", "3") + "\ndef test_once():\n    open('ran', 'x').close()\n"
    )
    result = run("--queryprof-save", "--queryprof-verify")
    assert result.returncode == 0, "a test that asks nothing is not compared"
    Path("test_a.py").write_text(
        "import os\nopen('ran2', 'x').close()\n" + UNSTABLE.replace("{times}", "3")
    )
    result = run("--queryprof-save", "--queryprof-verify")
    assert result.returncode == 1
    assert "or did not pass: 2 tests" in result.stdout
    result = run("--queryprof-verify")
    assert result.returncode == 4
    assert "--queryprof-verify goes with --queryprof-save" in result.stderr


def test_what_is_better_passes_and_says_how_to_accept_it(run: Run) -> None:
    """And one command accepts it."""
    suite()
    run("--queryprof-save")
    suite(times=3)
    result = run("--queryprof-check")
    assert result.returncode == 0
    assert "1 tests ask less than the baseline says; accept that with" in result.stdout
    run("--queryprof-save")
    assert "ask less" not in run("--queryprof-check").stdout


def test_saving_a_part_keeps_the_rest(run: Run) -> None:
    """Deselected tests, other files and failed tests keep what they had; removed ones go."""
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


def test_budgets(run: Run) -> None:
    """A marker in the code holds without any option; the failure lists the queries."""
    suite()
    text = Path("test_suite.py").read_text()
    for marker, passes in {
        "max_queries=5": True, "max_queries=4": False, "max_repeats=5": True,
        "max_repeats=4": False, "no_full_scans=True": True, "max_querys=4": False,
    }.items():  # fmt: skip
        marked = text.replace("def test_load", f"@pytest.mark.queryprof({marker})\ndef test_load")
        Path("test_suite.py").write_text(marked)
        result = run("-k", "test_load")
        assert (result.returncode == 0) == passes, f"{marker}\n{result.stdout}"
        assert passes or "queryprof marker" in result.stdout or "5 x SELECT" in result.stdout


def test_a_scan_exceeds_the_budget(run: Run) -> None:
    """no_full_scans is about large tables."""
    suite(index="")
    text = Path("test_suite.py").read_text()
    text = text.replace(
        "def test_load", "@pytest.mark.queryprof(no_full_scans=True)\ndef test_load"
    )
    Path("test_suite.py").write_text(text)
    result = run("-k", "test_load")
    assert result.returncode == 1
    assert "scans of large tables" in result.stdout


def test_the_fixture(run: Run) -> None:
    """Counts so far, and a block with a budget of its own."""
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
    assert "2 queries, at most 1 are allowed" in result.stdout
    assert "test_a.py:14" in result.stdout


def test_unittest_classes(run: Run) -> None:
    """Their setUp and tearDown belong to the test: pytest runs them inside it."""
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


def test_workers_of_xdist(run: Run) -> None:
    """Workers check, the first process sums up and saves the same baseline."""
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
    ("text", "told"),
    [
        (None, "there is no baseline yet"),
        ("{}", "is no baseline of queryprof"),
        ('{"format_version": 99, "sqlite_version": "3", "tests": {}}', "has format 99"),
        ("<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n", "merge conflict"),
        ('{"format_version": 1,', "is no JSON"),
    ],
)
def test_a_bad_baseline_is_one_line(run: Run, text: str | None, told: str) -> None:
    """No traceback, and what to do."""
    suite()
    if text is not None:
        Path("queryprof-baseline.json").write_text(text)
    result = run("--queryprof-check")
    assert result.returncode == 4
    (line,) = [line for line in result.stderr.splitlines() if line]
    assert line.startswith("ERROR: queryprof: ")
    assert told in line


def test_a_baseline_that_cannot_be_written_fails(run: Run) -> None:
    """With a line that says so, and the tests' own results above it."""
    suite()
    Path("pytest.ini").write_text("[pytest]\nqueryprof_baseline = nowhere/b.json\n")
    result = run("--queryprof-save")
    assert result.returncode == 1
    assert "nowhere/b.json: cannot be written: No such file or directory" in result.stdout
    assert "4 passed" in result.stdout
    assert "INTERNALERROR" not in result.stdout + result.stderr


def test_a_gate_that_measured_nothing_fails(run: Run) -> None:
    """Tests whose queries are not seen any more are not tests that got better."""
    suite()
    run("--queryprof-save")
    suite()
    text = Path("test_suite.py").read_text().replace("load(db, x)", "[1]")
    Path("test_suite.py").write_text(text)
    result = run("--queryprof-check")
    assert result.returncode == 1
    assert "this check checked nothing" in result.stdout


def test_settings(run: Run) -> None:
    """What fails and what is left out can be said in pytest's settings."""
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
        "must be of counts, plans, stalls, time, vmsteps" in result.stderr,
    ) == (
        4,
        True,
    )


BLOCKING = """
import asyncio, sqlite3, time
import pytest

SLOW = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
        " SELECT count(*) FROM n")

async def search():
    c = sqlite3.connect(":memory:")
    c.execute(SLOW).fetchone()
    c.close()

async def sleep():
    time.sleep(0.03)

@pytest.mark.queryprof(max_stall_ms={budget})
def test_search():
    asyncio.run(search())

def test_sleep():
    asyncio.run(sleep())

def test_healthy():
    asyncio.run(asyncio.sleep(0.2))
"""


def test_a_blocked_event_loop_exceeds_the_budget(run: Run) -> None:
    """With what blocked it, and where; in every run, with no option."""
    Path("test_loop.py").write_text(BLOCKING.format(budget=20))
    result = run()
    assert result.returncode == 1
    assert "test_loop.py::test_search keeps its event loop standing still" in result.stdout
    assert "max_stall_ms=20" in result.stdout
    assert "of it in WITH RECURSIVE" in result.stdout
    assert "at test_loop.py:10" in result.stdout
    assert "1 failed, 2 passed" in result.stdout
    Path("test_loop.py").write_text(BLOCKING.format(budget=20_000))
    assert run().returncode == 0


def test_stalls_are_shown_and_may_fail(run: Run) -> None:
    """The threshold is the setting's; the gate is off unless asked for."""
    Path("test_loop.py").write_text(BLOCKING.format(budget=20_000))
    Path("pyproject.toml").write_text("[tool.queryprof]\nstall_ms = 20\n")
    result = run("--queryprof")
    assert "stalled event loops" in result.stdout
    assert "sleep test_loop.py:" in result.stdout
    assert run("--queryprof-save").returncode == 0
    assert run("--queryprof-check").returncode == 0
    result = run("--queryprof-check", "-o", "queryprof_fail_on=stalls")
    assert result.returncode == 1
    assert "stall_ms=20" in result.stdout
    assert "test_healthy" not in result.stdout.partition("short test summary")[2]


def test_a_test_that_lasts_is_recorded_whole(run: Run) -> None:
    """The flusher's thread takes what was asked meanwhile, once a second."""
    Path("test_long.py").write_text(
        "import sqlite3, time\n"
        "def test_long():\n"
        "    c = sqlite3.connect(':memory:')\n"
        "    c.execute('CREATE TABLE t (a)')\n"
        "    for _ in range(3):\n"
        "        c.execute('SELECT a FROM t WHERE a = 1').fetchall()\n"
        "        time.sleep(1.1)\n"
        "    c.close()\n"
    )
    assert run("--queryprof-save").returncode == 0
    figures = baseline()["test_long.py::test_long"]["SELECT a FROM t WHERE a = ?"]
    assert figures["executions"] == 3
    assert figures["plans"] == [["SCAN t"]]


SLOW_SUITE = """
import sqlite3, time

def test_slow():
    c = sqlite3.connect(":memory:")
    c.create_function("wait", 0, lambda: time.sleep({seconds}))
    c.execute("SELECT wait()").fetchall()
    c.close()
"""


@pytest.mark.once
def test_times_fail_only_when_they_stand_out(pytester: pytest.Pytester) -> None:
    """From eight runs on this machine; the cache of pytest knows them."""
    pytester.makeini("[pytest]\nqueryprof_fail_on = counts time\n")
    options = ("-q", "-p", "no:hypothesispytest", "-p", "no:asyncio")

    def check(seconds: float, option: str = "--queryprof-check") -> pytest.RunResult:
        Path("test_slow.py").write_text(SLOW_SUITE.format(seconds=seconds))
        linecache.clearcache()
        return pytester.runpytest_inprocess(*options, option)

    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    assert check(0.01, "--queryprof-save").ret == 0
    for seconds in (0.01, 0.2, 0.01, 0.012, 0.01, 0.011, 0.01):
        assert check(seconds).ret == 0
    assert check(0.25).ret == 0, "as long before"
    result = check(0.6)
    sys.dont_write_bytecode = before
    assert result.ret == 1
    assert "in its earlier runs on this machine" in result.stdout.str()
    assert "test_slow.py:7" in result.stdout.str()
    result = pytester.runpytest_subprocess(*options, "-p", "no:cacheprovider", "--queryprof-check")
    assert result.ret == 4
    assert "needs pytest's cache" in result.stderr.str()
