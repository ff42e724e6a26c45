"""Tests that run on more and more data: `@pytest.mark.queryprof(max_growth=1)`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run

pytestmark = pytest.mark.once

run = pytest_runs.run

SUITE = """
import asyncio, sqlite3, unittest
import pytest

@pytest.fixture
def con():
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE author (id INTEGER PRIMARY KEY)")
    con.execute("CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER)")
    yield con
    con.close()

@pytest.fixture
def populate(con):
    def populate(n):
        con.execute("DELETE FROM author")
        con.execute("DELETE FROM book")
        con.executemany("INSERT INTO author VALUES (?)", [(id,) for id in range(n)])
        con.executemany("INSERT INTO book (author_id) VALUES (?)", [(id,) for id in range(n)])
    return populate

def page(con):
    for (id,) in con.execute("SELECT id FROM author").fetchall():
        con.execute("SELECT id FROM book WHERE author_id = ?", (id,)).fetchall()

@pytest.mark.queryprof(max_growth=1)
def test_square(con, populate):
    page(con)

@pytest.mark.queryprof(max_growth=2)
def test_square_is_allowed(con, populate):
    page(con)

@pytest.mark.queryprof(max_growth=1, sizes=(3, 6, 12, 24))
def test_sizes(con, populate):
    page(con)

@pytest.mark.queryprof(max_growth=0)
def test_constant(con, populate):
    con.execute("SELECT id FROM book WHERE id = 3").fetchall()

@pytest.mark.queryprof(max_growth=1)
def test_without_populate(con):
    page(con)

@pytest.mark.queryprof(max_growth=1, max_queries=3)
def test_two_limits(con, populate):
    page(con)

@pytest.mark.queryprof(max_growth=1)
def test_that_fails_itself(con, populate):
    assert con.execute("SELECT count(*) FROM book").fetchone() == (20,)

@pytest.mark.queryprof(max_growth=1)
async def test_coroutine(con, populate):
    await asyncio.sleep(0)
    page(con)

@pytest.mark.queryprof(max_growth=1)
class TestCase(unittest.TestCase):
    def test_method(self):
        pass

class TestMethods:
    @pytest.mark.queryprof(max_growth=1)
    def test_of_a_class(self, con, populate):
        page(con)
"""

OUTCOMES = {
    "test_square": "grows too fast, max_growth=1: VM steps grow with the square of n",
    "test_square_is_allowed": "",
    "test_sizes": "grows too fast",
    "test_constant": "",
    "test_without_populate": "max_growth: the test needs an argument `populate`",
    "test_two_limits": "max_growth cannot be combined with max_queries",
    "test_that_fails_itself": "assert (40,) == (20,)",
    "test_coroutine": "grows too fast",
    "TestCase::test_method": "max_growth cannot be checked: pytest did not call the test",
    "TestMethods::test_of_a_class": "grows too fast",
}


def test_each_test_passes_or_fails_as_its_law_says(run: Run) -> None:
    Path("test_suite.py").write_text(SUITE)
    result = run("-rA", "-o", "asyncio_mode=auto")
    lines = result.stdout.splitlines()
    for name, message in OUTCOMES.items():
        found = next(line for line in lines if re.match(rf"(PASSED|FAILED) \S*{name}\b", line))
        assert found.startswith("FAILED" if message else "PASSED"), result.stdout
        assert message in result.stdout
    assert "only n got larger" not in result.stdout
    for own in ("run_on_growing_data(", "measure_growths("):
        assert own not in result.stdout, "a failure shows the test, not queryprof"


def test_a_baseline_holds_the_queries_of_all_sizes(run: Run) -> None:
    Path("test_suite.py").write_text(SUITE)
    chosen = ("-k", "test_constant or allowed")
    assert run(*chosen, "--queryprof-save").returncode == 0
    result = run(*chosen, "--queryprof-check")
    assert result.returncode == 0, result.stdout


LOOP = """
import sqlite3
from shop import names

def test_names():
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
    con.executemany("INSERT INTO author (name) VALUES (?)", [("Ada",)] * 5)
    names(con)
    con.close()
"""
SHOP = """
def names(con):
    ids = [id for (id,) in con.execute("SELECT id FROM author").fetchall()]
    return {returned}
"""


def test_a_test_that_fails_for_a_finding_is_compared_too(run: Run) -> None:
    Path("test_suite.py").write_text(LOOP)
    Path("shop.py").write_text(SHOP.format(returned="ids"))
    assert run("--queryprof-save").returncode == 0
    each = '[con.execute("SELECT name FROM author WHERE id = ?", (id,)).fetchone() for id in ids]'
    Path("shop.py").write_text(SHOP.format(returned=each))
    result = run("--queryprof-check", "-o", "queryprof_fail_on=n_plus_one")
    assert result.returncode == 1
    assert "N+1 query" in result.stdout
    assert "none are worse" not in result.stdout
