"""Limits of blocks: cursors that began before, changed rows, and more statements than fit."""

from __future__ import annotations

import sqlite3

import pytest

import queryprof

pytestmark = pytest.mark.once


@pytest.fixture
def con():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE big (a INTEGER PRIMARY KEY, b INT)")
    connection.executemany("INSERT INTO big (b) VALUES (?)", ((n,) for n in range(2000)))
    connection.commit()
    yield connection
    connection.close()


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"rows": 40}, ""),
        ({"rows": 39}, "40 rows, rows=39"),
        ({"vm_steps": 20}, "VM steps"),
        ({"queries": 0}, ""),  # none begins in the block
        ({"plans": "no sort"}, "plans are unknown"),
    ],
)
def test_a_cursor_that_began_before_counts_with_what_it_does_inside(
    con, limits, message, is_closed, is_recorded
):
    if is_recorded:
        queryprof.install()
    cursor = con.execute("SELECT a FROM big")
    cursor.fetchone()
    found = ""
    try:
        with queryprof.at_most(**limits):
            cursor.fetchmany(40)
            if is_closed:
                cursor.close()
    except AssertionError as error:
        found = str(error).splitlines()[0]
    finally:
        queryprof.uninstall()
    assert message in found
    assert bool(message) == bool(found)


def test_the_steps_of_a_cursor_that_began_before_are_those_inside(con):
    with queryprof.at_most(queries=1):  # recorded
        cursor = con.execute("SELECT a FROM big")
        for rows, most in ((1, 10), (100, 400)):
            with pytest.raises(AssertionError, match="VM steps"), queryprof.at_most(vm_steps=most):
                cursor.fetchmany(rows * 10)
        with queryprof.at_most(vm_steps=400):
            cursor.fetchmany(10)


@pytest.mark.slow
def test_more_statements_than_are_kept_apart_cannot_be_checked(con):
    with (
        pytest.raises(AssertionError, match="too many different statements"),
        queryprof.at_most(queries=10**6),
    ):
        for number in range(33_000):
            con.execute(f"SELECT 1 AS n{number}")


def test_rows_are_those_that_are_changed_too(con):
    with pytest.raises(AssertionError, match="50 rows, rows=3"), queryprof.at_most(rows=3):
        con.execute("UPDATE big SET b = 1 WHERE a <= 50")
