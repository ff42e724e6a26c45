"""Limits in the tests of the plugin's users: limits, stalls, times."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run, baseline, suite

pytestmark = pytest.mark.once

run = pytest_runs.run


@pytest.mark.slow
def test_limits(run: Run) -> None:
    """A marker in the code works without any option. The failure lists the queries."""
    suite()
    text = Path("test_suite.py").read_text()
    for marker, passes in {
        "max_queries=5": True,
        "max_queries=4": False,
        "max_repeats=5": True,
        "max_repeats=4": False,
        "no_full_scans=True": True,
        "max_querys=4": False,
    }.items():
        marked = text.replace("def test_load", f"@pytest.mark.queryprof({marker})\ndef test_load")
        Path("test_suite.py").write_text(marked)
        result = run("-k", "test_load")
        assert (result.returncode == 0) == passes, f"{marker}\n{result.stdout}"
        assert passes or "queryprof marker" in result.stdout or "5 x SELECT" in result.stdout


def test_a_scan_exceeds_the_limit(run: Run) -> None:
    """no_full_scans refers to large tables."""
    suite(index="")
    text = Path("test_suite.py").read_text()
    text = text.replace(
        "def test_load", "@pytest.mark.queryprof(no_full_scans=True)\ndef test_load"
    )
    Path("test_suite.py").write_text(text)
    result = run("-k", "test_load")
    assert result.returncode == 1
    assert "scans of large tables" in result.stdout


TESTS = str(Path(__file__).parents[1])

BLOCKING = """
import asyncio, sqlite3, sys, time
import pytest
sys.path.insert(0, {tests!r})
from core.loop_programs import until_seen

SLOW = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
        " SELECT count(*) FROM n")

async def search():
    c = sqlite3.connect(":memory:")
    with until_seen() as seen: [c.execute(SLOW).fetchone() for _ in iter(seen.is_set, True)]
    c.close()

async def sleep():
    time.sleep(0.3)

@pytest.mark.queryprof(max_stall_ms={limit})
def test_search():
    asyncio.run(search())

def test_sleep():
    asyncio.run(sleep())

def test_healthy():
    asyncio.run(asyncio.sleep(0.4))
"""


def test_a_blocked_event_loop_exceeds_the_limit(run: Run) -> None:
    """The failure shows the cause and the line, in every run, without an option."""
    Path("test_loop.py").write_text(BLOCKING.format(limit=20, tests=TESTS))
    result = run()
    assert result.returncode == 1
    assert "test_loop.py::test_search - Failed: an event loop stalled, max_stall_m" in result.stdout
    assert "max_stall_ms=20" in result.stdout
    assert "of it in WITH RECURSIVE" in result.stdout
    assert "at test_loop.py:12" in result.stdout
    assert "1 failed, 2 passed" in result.stdout
    Path("test_loop.py").write_text(BLOCKING.format(limit=60_000, tests=TESTS))
    assert run().returncode == 0


@pytest.mark.slow
def test_stalls_are_shown_and_may_fail(run: Run) -> None:
    """The threshold is a setting. The check is off by default."""
    Path("test_loop.py").write_text(BLOCKING.format(limit=60_000, tests=TESTS))
    Path("pyproject.toml").write_text("[tool.queryprof]\nstall_ms = 250\n")
    result = run("--queryprof")
    assert "stalled event loops" in result.stdout
    assert "sleep test_loop.py:" in result.stdout
    # It runs until its stall was seen: how often depends on the machine.
    uncounted = ("-o", "queryprof_ignore=WITH RECURSIVE")
    assert run("--queryprof-save", *uncounted).returncode == 0
    assert run("--queryprof-check", *uncounted).returncode == 0
    result = run("--queryprof-check", *uncounted, "-o", "queryprof_fail_on=stalls")
    assert result.returncode == 1
    assert "stall_ms=250" in result.stdout
    assert "test_healthy" not in result.stdout.partition("short test summary")[2]


@pytest.mark.slow
def test_a_test_that_lasts_is_recorded_whole(run: Run) -> None:
    """The flusher's thread collects the calls once a second."""
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


@pytest.mark.slow
def test_times_fail_only_when_they_stand_out(pytester: pytest.Pytester) -> None:
    """At least eight runs on this machine are needed. Pytest's cache has the times."""
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
    assert "in earlier runs on this machine" in result.stdout.str()
    assert "test_slow.py:7" in result.stdout.str()
    result = pytester.runpytest_subprocess(*options, "-p", "no:cacheprovider", "--queryprof-check")
    assert result.ret == 4
    assert "needs pytest's cache" in result.stderr.str()


LOCKING = """
import sqlite3, threading, time
import pytest

def hold(path, begun):
    c = sqlite3.connect(path, isolation_level=None)
    c.execute("BEGIN IMMEDIATE")
    begun.set()
    time.sleep(0.15)
    c.execute("COMMIT")
    c.close()

def work(path):
    begun = threading.Event()
    holder = threading.Thread(target=hold, args=(path, begun))
    holder.start()
    begun.wait()
    c = sqlite3.connect(path, isolation_level=None)
    c.execute("CREATE TABLE t (a)")
    holder.join()
    c.execute("INSERT INTO t VALUES (1), (2)")
    rows = c.execute("SELECT a FROM t")
    rows.fetchone()
    time.sleep(0.03)
    c.close()

@pytest.mark.queryprof(max_lock_wait_ms={limit})
def test_wait(tmp_path):
    work(tmp_path / "t.db")

@pytest.mark.queryprof(max_transaction_ms={limit})
def test_transaction(tmp_path):
    work(tmp_path / "t.db")

@pytest.mark.queryprof(max_transaction_ms=60_000, max_lock_wait_ms=60_000)
def test_healthy(tmp_path):
    c = sqlite3.connect(tmp_path / "t.db")
    c.execute("CREATE TABLE t (a)")
    c.close()
"""


@pytest.mark.slow
def test_locks_have_limits(run: Run) -> None:
    """There are limits for waits and for holds. Failures have the statement and the line."""
    Path("test_locks.py").write_text(LOCKING.format(limit=20))
    result = run()
    assert result.returncode == 1
    assert "2 failed, 1 passed" in result.stdout
    assert "a lock exceeds its limit: max_lock_wait_ms=20" in result.stdout
    assert "CREATE TABLE t(a) at test_locks.py:19" in result.stdout
    assert "a lock exceeds its limit: max_transaction_ms=20" in result.stdout
    assert "BEGIN IMMEDIATE at test_locks.py:7" in result.stdout
    assert (
        "SELECT" not in result.stdout
    )  # that limit does not count a held read lock as a transaction
    Path("test_locks.py").write_text(LOCKING.format(limit=60_000))
    assert run().returncode == 0


def test_a_baseline_is_not_checked_with_itself(run: Run) -> None:
    """--queryprof-save renews it, even if addopts contain the check."""
    suite()
    result = run("--queryprof-save", "--queryprof-check")
    assert (result.returncode, Path("queryprof-baseline.json").exists()) == (4, False)
    assert "use only one" in result.stderr
    Path("pytest.ini").write_text("[pytest]\naddopts = --queryprof-check\n")
    assert run("--queryprof-save").returncode == 0
    assert run().returncode == 0
    suite(times=6)
    assert run().returncode == 1


def test_without_a_test_that_has_passed_no_baseline_is_made(run: Run) -> None:
    suite(extra="raise KeyError")
    Path("test_suite.py").write_text("import missing_module\n")
    for status, arguments in (
        (2, ["--queryprof-save"]),
        (5, ["--queryprof-save", "-k", "none", "--ignore=test_suite.py"]),
    ):
        result = run(*arguments)
        assert (result.returncode, Path("queryprof-baseline.json").exists()) == (status, False)
