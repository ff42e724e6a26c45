"""Operators that DuckDB measured, in words: in the report, on a page, in a cell and for agents."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.analysis.operators import operators_by_statement
from queryprof.model import Operator
from queryprof.report.text.operators import operator_lines

pytestmark = pytest.mark.once

STATEMENT = "SELECT a FROM t"
NOT_READ = (
    "operators, by DuckDB, each of 5 executions, 2 of them not read to the end: time, rows,"
    " rows read"
)


def operator(
    place: str,
    name: str,
    executions: int = 4,
    unfinished: int = 0,
    scanned: int = 0,
    plan: int = 1,
    ns: int = 4_000,
) -> Operator:
    return Operator(STATEMENT, plan, place, name, executions, unfinished, 10, scanned, ns)


def lines(*operators: Operator) -> list[str]:
    return list(operator_lines(operators_by_statement(operators).get(STATEMENT, ())))


def test_each_is_above_those_that_it_reads_from() -> None:
    assert lines(
        operator("0.0.10", "LAST"),
        operator("0.0.2", "TABLE_SCAN t", scanned=4000),
        operator("0.0", "JOIN"),
        operator("0", "TOP"),
    ) == [
        "operators, by DuckDB, each of 4 executions: time, rows, rows read",
        "1.00 µs  2.5         TOP",
        "1.00 µs  2.5           JOIN",
        "1.00 µs  2.5  1,000      TABLE_SCAN t",
        "1.00 µs  2.5             LAST",
    ]


def test_each_plan_is_a_tree() -> None:
    """The most executed comes first."""
    assert lines(operator("0", "B", 1, plan=2), operator("0", "A", 5, unfinished=2, plan=3)) == [
        NOT_READ,
        "800 ns  2    A",
        "or, by another plan, each of 1 execution: time, rows, rows read",
        "4.00 µs  10    B",
    ]


def test_the_slowest_are_shown() -> None:
    plan = [operator(str(number), f"N{number}", ns=4_000 * number) for number in range(5)]
    found = list(operator_lines(operators_by_statement(plan)[STATEMENT], 4))
    assert [line.rpartition(" ")[2] for line in found[1:5]] == ["N1", "N2", "N3", "N4"]
    assert found[5:] == ["... (1 more, which take less; --format json has all)"]
    assert len(list(operator_lines(operators_by_statement(plan)[STATEMENT], 5))) == 6


@pytest.mark.parametrize("count", [3, 4, 100_000])
@pytest.mark.repeats
def test_so_many_plans_are_shown(count: int) -> None:
    found = lines(*(operator("0", "A", plan=number) for number in range(count)))
    assert found.count("1.00 µs  2.5    A") == 3
    assert len(found) == 6 + (count > 3)
    more = {3: [], 4: ["... (1 more plan; --format json has all)"]}
    assert found[6:] == more.get(count, ["... (99,997 more plans; --format json has all)"])


@pytest.mark.parametrize("place", ["0", "0.{}"])
@pytest.mark.repeats
def test_a_plan_of_any_size(place: str) -> None:
    """A stranger's trace may have many names at one place."""
    plan = [operator(place.format(n), f"A{n}", ns=n) for n in range(100_000)]
    found = lines(*plan)
    assert len(found) == 1 + 40 + 1


def test_what_is_unknown_is_left_out() -> None:
    assert lines() == []
    assert lines(operator("0", "A", executions=0), operator("0", "A", executions=-1)) == []


def test_any_place_is_shown() -> None:
    """A stranger's trace may have any text there."""
    places = ["", ".", "x", "0..1", "9" * 50, "0." * 100]
    found = lines(*(operator(place, "A") for place in places))
    assert len(found) == 1 + len(places)
    assert max(map(len, found[1:])) < 60


@pytest.fixture
def trace(tmp_path: Path, queryprof: Run) -> Path:
    """Of a query that takes all the time, with 40 operators of hostile names."""
    (tmp_path / "program.py").write_text(
        "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT ?', (1,)).fetchall()\n"
    )
    queryprof("run", "--no-report", "-o", "t.qprof", "program.py", cwd=tmp_path)
    path = tmp_path / "t.qprof"
    with closing(sqlite3.connect(path)) as connection, connection:
        (statement,) = connection.execute("SELECT id FROM statement WHERE text = 'SELECT ?'")
        rows = [(*statement, 3, f"0.{n}", f"SCAN <b>{n}</b>\x1b[31m") for n in range(40)]
        connection.executemany("INSERT INTO operator VALUES (?, ?, ?, ?, 1, 0, 1, 0, 1)", rows)
    return path


def test_report_page_and_json(trace: Path, queryprof: Run) -> None:
    report = queryprof("report", "--top", 10, trace.name, cwd=trace.parent)
    assert report.returncode == 0
    assert "operators, by DuckDB, each of 1 execution: time, rows, rows read" in report.stdout
    assert "... (25 more, which take less; --format json has all)" in report.stdout
    assert "\x1b" not in report.stdout
    assert "SCAN <b>14</b>" in report.stdout
    assert "SCAN <b>15</b>" not in report.stdout
    queryprof("html", trace.name, "-o", "page.html", cwd=trace.parent)
    page = (trace.parent / "page.html").read_text()
    assert "operators, by DuckDB" in page
    assert "<b>39</b>" not in page
    document = json.loads(
        queryprof("report", trace.name, "--format", "json", cwd=trace.parent).stdout
    )
    assert len(document["operators"]) == 40
    assert document["operators"][0]["statement"] == "SELECT ?"
