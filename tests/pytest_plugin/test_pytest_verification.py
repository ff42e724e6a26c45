"""Differences between equal runs of a suite: random names and unstable figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run, baseline

run = pytest_runs.run

RANDOM_SUITE = """
import random, sqlite3, string, uuid

import pytest

pytestmark = pytest.mark.once

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


@pytest.mark.slow
def test_random_names_are_the_same_statement_in_each_run(run: Run) -> None:
    """These are names that look random, and statements that differ only in names."""
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


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_verification_names_what_is_not_stable(run: Run, options: tuple[str, ...]) -> None:
    """The tests run twice. The baseline is that of the first run."""
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
    assert "1 tests execute different queries in a second run" in result.stdout
    assert baseline()["test_a.py::test_unstable"]["SELECT ?"]["executions"] == 1


def test_what_is_stable_is_verified(run: Run) -> None:
    """This works even if another test is skipped."""
    Path("test_a.py").write_text(UNSTABLE.replace("{times}", "3"))
    result = run("--queryprof-save", "--queryprof-verify")
    assert result.returncode == 0, result.stdout
    assert "a second run executed the same: 2 tests are stable" in result.stdout
    text = UNSTABLE.replace("range({times})", "range(__import__('random').randrange(100))")
    text = text.replace(
        "def test_unstable", "@pytest.mark.queryprof(baseline=False)\ndef test_unstable"
    )
    Path("test_a.py").write_text("import pytest\n" + text)
    assert run("--queryprof-save", "--queryprof-verify").returncode == 0
    assert list(baseline()) == ["test_a.py::test_stable"]
    result = run("--queryprof-check")
    assert (result.returncode, "not in the baseline" in result.stdout) == (0, False)


@pytest.mark.slow
def test_verification_that_cannot_run_fails(run: Run) -> None:
    """The message has the output of the second run. Without a baseline there is nothing
    to verify.
    """
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
    assert (
        "the second run of the tests ended with status 2 before it saved anything" in result.stdout
    )
    result = run("--queryprof-verify")
    assert result.returncode == 4
    assert "--queryprof-verify needs --queryprof-save" in result.stderr
