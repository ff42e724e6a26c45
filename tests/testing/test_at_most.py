"""Limits of blocks in any program or test."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import unittest

import pytest

import queryprof
from queryprof.collect.reader import read_profile
from queryprof.testing.limits import excess_of_limits, limits_of
from queryprof.testing.meter import meter

SELECT = "SELECT a FROM big WHERE b = ?"


@pytest.fixture
def con():
    connection = sqlite3.connect("app.db")
    connection.execute("CREATE TABLE big (a INTEGER PRIMARY KEY, b INT)")
    connection.execute("CREATE TABLE small (c)")
    connection.executemany("INSERT INTO big (b) VALUES (?)", ((n,) for n in range(2000)))
    connection.commit()
    yield connection
    connection.close()


def work(con, times=3):
    for number in range(times):
        con.execute(SELECT, (number,)).fetchall()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"queries": 2}, "over the limit: 3 queries, queries=2:"),
        ({"repeats": 2}, "over the limit: repeated from one line, repeats=2:"),
        ({"rows": 2}, "over the limit: 3 rows, rows=2:"),
        ({"vm_steps": 100}, "VM steps, vm_steps=100:"),
        ({"plans": "no full scan"}, "over the limit: plans 'no full scan':"),
        ({"plans": "no full scan of big"}, "over the limit: plans 'no full scan of big':"),
        ({"plans": ["no sort", 'no full scan of "BIG"']}, "plans 'no full scan of \"BIG\"':"),
        ({"plans": "no full scan of smal"}, "checks nothing: no statement uses smal:"),
    ],
)
@pytest.mark.repeats
def test_what_exceeds_a_limit_is_shown_with_its_lines(con, limits, message):
    with pytest.raises(AssertionError) as error, queryprof.at_most(**limits):
        work(con)
    text = str(error.value)
    assert message in text.splitlines()[0]
    assert f"3 x {SELECT}" in text
    assert "work test_at_most.py" in text or "work /" in text
    assert "con.execute(SELECT, (number,)).fetchall()" in text
    if "plans" in limits and "smal" not in message:
        assert "plan  SCAN big" in text


@pytest.mark.parametrize(
    "limits",
    [
        {"queries": 3},
        {"repeats": 3},
        {"rows": 3},
        {"vm_steps": 10**6},
        {"plans": ["no sort", "no automatic index"]},
        {"lock_wait_ms": 60_000, "transaction_ms": 60_000, "stall_ms": 60_000},
    ],
)
@pytest.mark.repeats
def test_what_is_within_passes(con, limits):
    with queryprof.at_most(**limits):
        work(con)
    assert not queryprof.is_installed()


def test_vm_steps_have_a_sharp_limit(con):
    """The exact number passes, and one less fails."""
    with pytest.raises(AssertionError) as error, queryprof.at_most(vm_steps=0):
        work(con)
    steps = int(str(error.value).split(" VM steps")[0].rpartition(" ")[2].replace(",", ""))
    with queryprof.at_most(vm_steps=steps):
        work(con)
    with pytest.raises(AssertionError), queryprof.at_most(vm_steps=steps - 1):
        work(con)


def test_a_scan_under_another_name_is_one_of_the_table(con):
    with pytest.raises(AssertionError), queryprof.at_most(plans="no full scan of big"):
        con.execute("SELECT x.a FROM big AS x WHERE x.b = 3").fetchall()
    con.execute("CREATE VIEW seen AS SELECT * FROM big WHERE b > 3")
    with pytest.raises(AssertionError), queryprof.at_most(plans="no full scan of big"):
        con.execute("SELECT count(*) FROM seen WHERE b > 5").fetchall()
    with queryprof.at_most(plans="no full scan of big"):
        con.execute("SELECT b FROM big WHERE a = 3").fetchall()


def test_what_has_no_plan_needs_none(con):
    with queryprof.at_most(plans="no full scan"):
        con.execute("INSERT INTO small VALUES (1)")
        con.execute("DELETE FROM small")
        con.execute("PRAGMA user_version").fetchall()
        con.commit()


def test_a_nested_block_counts_for_both(con):
    with pytest.raises(AssertionError, match="4 queries"), queryprof.at_most(3):
        work(con, 1)
        with queryprof.at_most(2):
            work(con, 2)
        work(con, 1)
    assert not queryprof.is_installed()


def test_the_blocks_own_exception_goes_on(con):
    with pytest.raises(ZeroDivisionError), queryprof.at_most(0):
        work(con)
        raise ZeroDivisionError
    assert not queryprof.is_installed()


def test_in_a_recording_it_leaves_the_recording(con):
    with queryprof.profile() as recording:
        work(con, 1)
        with pytest.raises(AssertionError, match="2 queries"), queryprof.at_most(1):
            work(con, 2)
        work(con, 4)
    assert recording.profile.aggregates
    found = [
        a.count
        for a in recording.profile.aggregates
        if a.statement == SELECT and a.operation == "execute"
    ]
    assert sum(found) == 7
    assert not queryprof.is_installed()


def test_a_recording_inside_is_measured_too(con):
    with pytest.raises(AssertionError, match="5 queries"), queryprof.at_most(4):
        work(con, 1)
        with queryprof.profile() as recording:
            work(con, 3)
        work(con, 1)
    (found,) = [
        a
        for a in recording.profile.aggregates
        if a.statement == SELECT and a.operation == "execute"
    ]
    assert found.count == 3


def test_a_recording_that_ends_inside_cannot_be_checked(con):
    with pytest.raises(AssertionError, match="the recording ended inside"), queryprof.at_most(100):
        queryprof.uninstall()
        work(con)


def test_other_threads_and_tasks_count(con):
    def other():
        own = sqlite3.connect("app.db")
        own.execute(SELECT, (1,)).fetchall()
        own.close()

    with pytest.raises(AssertionError, match="3 queries"), queryprof.at_most(2):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        work(con, 1)
        asyncio.run(asyncio.to_thread(other))


def test_a_forked_child_is_its_own_program(script):
    program = script("""
import os, sqlite3, queryprof
con = sqlite3.connect(":memory:")
try:
    with queryprof.at_most(0):
        child = os.fork()
        if not child:
            with queryprof.at_most(1):
                sqlite3.connect(":memory:").execute("SELECT 1")
        else:
            _, status = os.waitpid(child, 0)
except AssertionError:
    print("failed", bool(child))
else:
    print("passed", bool(child), queryprof.is_installed())
""")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(done.stdout.splitlines()) == ["passed False False", "passed True False"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"queries": "3"}, "queries: must be a number, not '3'"),
        ({"queries": True}, "queries: must be a number, not True"),
        ({}, "at_most: give at least one limit, such as queries=5"),
        ({"querys": 3}, "querys is not a limit"),
        ({"plans": 3}, "plans: must be a string or a list of strings, not 3"),
        ({"rows": -1}, "rows: must be 0 or more, not -1"),
        ({"plans": "no seq scans"}, "plans: unknown 'no seq scans'; choose from 'no full scan'"),
        ({"plans": "no sort of big"}, "plans: unknown 'no sort of big'; choose from"),
    ],
)
def test_a_wrong_limit_is_an_error_at_once(limits, error):
    with pytest.raises((TypeError, ValueError), match=error.replace("(", r"\(")):
        queryprof.at_most(**limits)


def test_an_unknown_limit_names_the_known_ones():
    with pytest.raises(
        TypeError,
        match=r"querys is not a limit \(did you mean queries\?\); the limits are .*rows",
    ):
        limits_of({"querys": 3})


def test_what_is_not_known_fails():
    """Another database's driver has neither steps nor plans: a limit on them would
    check nothing.
    """
    pytest.importorskip("duckdb")
    import duckdb

    con = duckdb.connect()
    with (
        pytest.raises(AssertionError, match="VM steps are unknown"),
        queryprof.at_most(vm_steps=9),
    ):
        con.execute("SELECT 42").fetchall()
    with (
        pytest.raises(AssertionError, match="plans are unknown"),
        queryprof.at_most(plans="no sort"),
    ):
        con.execute("SELECT 42").fetchall()
    with queryprof.at_most(queries=1):
        con.execute("SELECT 42").fetchall()


def test_a_case_has_the_same_as_an_assertion(con):
    class Plain(unittest.TestCase):
        pass

    class Held(queryprof.TestCase, Plain):
        def test_within(self):
            with self.assertAtMost(queries=3):
                work(con)

        def test_beyond(self):
            with self.assertAtMost(2, rows=100):
                work(con)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Held).run(result)
    ((test, text),) = result.failures
    assert (result.testsRun, test.id().rpartition(".")[2]) == (2, "test_beyond")
    assert "over the limit: 3 queries, queries=2:" in text
    assert not queryprof.is_installed()


def test_no_limit_exceeds_nothing(con):
    from queryprof.testing.calls import Calls

    assert excess_of_limits(limits_of({}), Calls([], None, None)) == ""  # type: ignore[arg-type]


def test_names_may_have_spaces(con):
    con.execute('CREATE TABLE "order items" (a, b)')
    with pytest.raises(AssertionError), queryprof.at_most(plans='no full scan of "order items"'):
        con.execute('SELECT * FROM "order items"').fetchall()
    with pytest.raises(AssertionError), queryprof.at_most(plans="no full scan of big"):
        con.execute('SELECT * FROM big AS "the log" WHERE b = 3').fetchall()
    con.execute("ATTACH ':memory:' AS other")
    con.execute("CREATE TABLE other.far (a)")
    with pytest.raises(AssertionError), queryprof.at_most(plans="no full scan of far"):
        con.execute("SELECT * FROM other.far").fetchall()


@pytest.mark.parametrize(
    "limits",
    [
        {"queries": float("nan")},
        {"rows": float("inf")},
        {"plans": []},
        {"plans": "no full scan of ,"},
    ],
    ids=str,
)
def test_no_value_switches_a_limit_off(limits):
    with pytest.raises(ValueError, match=r"must be|choose from|empty"):
        queryprof.at_most(**limits)


def test_a_recording_that_begins_inside_goes_on(con):
    with queryprof.at_most(queries=5):
        queryprof.install("app.qprof")
        work(con, 2)
    assert queryprof.is_installed()
    work(con, 3)
    queryprof.uninstall()
    found = [
        a.count
        for a in read_profile("app.qprof").aggregates
        if a.statement == SELECT and a.operation == "execute"
    ]
    assert sum(found) == 5


def test_a_block_that_ends_before_one_inside_it(con):
    limits, recording = queryprof.at_most(5), queryprof.profile()
    limits.__enter__()
    recording.__enter__()
    work(con, 1)
    limits.__exit__(None, None, None)
    assert queryprof.is_installed()
    work(con, 7)
    recording.__exit__(None, None, None)
    assert not queryprof.is_installed()
    found = [
        a.count
        for a in recording.profile.aggregates
        if a.statement == SELECT and a.operation == "execute"
    ]
    assert sum(found) == 8


def test_a_recording_that_is_begun_again_inside_cannot_be_checked(con):
    with pytest.raises(AssertionError, match="the recording ended inside"), queryprof.at_most(0):
        work(con, 5)
        queryprof.uninstall()
        queryprof.install("again.qprof")
        work(con, 5)
    queryprof.uninstall()


def test_a_recording_that_is_renewed_inside_cannot_be_checked(con, monkeypatch):
    monkeypatch.setattr("queryprof.testing.meter.MAX_STATEMENTS", 1)
    with pytest.raises(AssertionError, match="the recording ended inside"), queryprof.at_most(1):
        work(con, 5)
        con.execute("SELECT 1").fetchall()
        meter.border()
        meter.renew()


def test_the_fixture_needs_a_limit_too():
    from queryprof.pytest_plugin.queries import CountedQueries, queries_without_recording

    for fixture in (CountedQueries(lambda: None), queries_without_recording()):
        with pytest.raises(TypeError, match="give at least one limit"):
            fixture.at_most()


def test_a_plan_from_before_is_none_of_the_block(con):
    class Held(queryprof.TestCase):
        def test_it(self):
            con.execute(SELECT, (1,)).fetchall()
            con.execute("CREATE INDEX big_b ON big (b)")
            with self.assertAtMost(plans="no full scan of big"):
                con.execute(SELECT, (1,)).fetchall()
            con.execute("DROP INDEX big_b")
            with pytest.raises(AssertionError), self.assertAtMost(plans="no full scan of big"):
                con.execute(SELECT, (1,)).fetchall()

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Held).run(result)
    assert (result.testsRun, result.failures, result.errors) == (1, [], [])


def test_one_line_is_one_whatever_calls_it(con):
    with (
        pytest.raises(AssertionError, match="repeated from one line"),
        queryprof.at_most(repeats=5),
    ):
        work(con, 3)
        work(con, 3)
