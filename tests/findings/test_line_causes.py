"""Causes that only the time of the program's line, or the counters, show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.line_profiles import MS, READ, SITE, WRITE, findings, loop, only, profile

from queryprof.analysis.report import Report
from queryprof.findings.amounts import LARGE
from queryprof.findings.find import find_all
from queryprof.findings.finding import Severity
from queryprof.findings.large_values import LEAVE_OUT
from queryprof.findings.source_lines import UnknownSourceLines
from queryprof.model import Frame, LineTime, Plan, StackSample

pytestmark = pytest.mark.once


OTHER_WRITE = "INSERT INTO u VALUES (?)"


@pytest.mark.parametrize(
    ("written", "is_flushed", "category"),
    [
        (OTHER_WRITE, True, "n_plus_one"),
        (OTHER_WRITE, False, "single_inserts"),
        (WRITE, True, "n_plus_one"),
    ],
)
def test_what_an_autoflush_writes_is_the_query_s(
    written: str, is_flushed: bool, category: str
) -> None:
    """SQLAlchemy writes new objects before a query in the same line. A query of their table may
    look for them, and needs the flush.
    """
    flush = Frame(
        "Session._autoflush", "/venv/site-packages/sqlalchemy/orm/session.py", 1, "library"
    )
    one = profile(loop(READ, 60, 60, others=60), loop(written, 60, 60, others=60))
    stacks = [
        replace(stack, stack=(stack.stack[0], flush, *stack.stack[1:]))
        if is_flushed and stack.statement == written
        else stack
        for stack in one.stack_samples
    ]
    found = only(replace(one, stack_samples=tuple(stacks)))
    assert found.category == category
    assert ("no_autoflush" in found.fix) == (is_flushed and written != WRITE)


@pytest.mark.parametrize(
    ("rows", "pass_ms", "is_reported"), [(50, 20, True), (49, 20, False), (50, 19, False)]
)
def test_objects_of_many_rows(rows: int, pass_ms: int, is_reported: bool) -> None:
    """Each has fifty rows, and the library takes longer than the driver (10 ms)."""
    driver, time = loop(READ, 1, 1, pass_ns=pass_ms * MS, count=1)
    driver = driver._replace(rows=rows, self_ns=10 * MS, total_ns=10 * MS)
    found = findings(profile((driver, time)), is_loop=False)
    assert [one.category for one in found] == ["many_objects"] * is_reported
    if is_reported:
        assert found[0].severity is Severity.LOW
        assert ".tuples()" in found[0].fix


@pytest.mark.parametrize(("other", "has_large"), [(READ[:-1] + "? LIMIT ?", True), (WRITE, False)])
@pytest.mark.parametrize("fetches", [799, 800])
def test_objects_of_large_rows(other: str, has_large: bool, fetches: int) -> None:
    """Another query of the line takes eight page fetches for each of 100 rows."""
    driver, time = loop(READ, 1, 1, pass_ns=20 * MS, count=1)
    driver = driver._replace(rows=100, self_ns=10 * MS, total_ns=10 * MS)
    also = aggregate(other, SITE, ns=MS, count=1)._replace(
        rows=100, vm_steps=500, page_fetches=fetches, page_fetch_samples=1
    )
    some = findings(profile((driver, time), (also, None)), is_loop=False)
    (found,) = (one for one in some if one.category == "many_objects")
    is_large = has_large and fetches == 800
    assert (found.fix == f"{LARGE} {LEAVE_OUT['peewee']}") == is_large


class ReadsValues(UnknownSourceLines):
    """Source whose lines ask for values."""

    def reads_values(self, frame: Frame) -> bool:
        return True


def test_a_line_that_already_reads_values() -> None:
    driver, time = loop(READ, 1, 1, pass_ns=20 * MS, count=1)
    driver = driver._replace(rows=100, self_ns=10 * MS, total_ns=10 * MS)
    report = Report(profile((driver, time)))
    (found,) = find_all(report, lambda *_: None, {}, lines=ReadsValues())
    assert found.fix.startswith("The line already reads values")


def test_rows_of_a_loop_that_was_timed_in_part() -> None:
    """A loop over 60,000 objects: of the first 1,000 rows each took 5 us; the query took 10 ms."""
    driver, time = loop(READ, 1, 1, pass_ns=15 * MS, count=1)
    driver = driver._replace(rows=60_000, self_ns=10 * MS, total_ns=10 * MS)
    time = replace(time, loop_rows=1000, loop_ns=5 * MS)
    found = only(profile((driver, time)))
    assert found.category == "many_objects"
    assert found.gain_ns == (10 + 60 * 5) * MS


def test_a_commit_takes_what_its_line_takes() -> None:
    """SQLAlchemy's commit of one change expires all objects: 2 ms, of which the driver takes 0.1
    ms.
    """
    session = Frame("commit", "/venv/site-packages/sqlalchemy/orm/session.py", 1, "library")
    write = aggregate("UPDATE t SET a = ?", SITE, ns=MS, count=100)
    commit = aggregate("COMMIT", SITE, ns=10 * MS, count=100, operation="commit")
    times = tuple(
        LineTime(one, SITE, 60, 60, 60, 60 * 2 * MS) for one in (write.statement, "COMMIT")
    )
    stacks = tuple(
        StackSample(one.statement, (session, *one.path), 64, 1) for one in (write, commit)
    )
    found = findings(replace(profile_of(write, commit), line_times=times, stack_samples=stacks))
    assert [one.category for one in found] == ["commit_per_write"]
    assert found[0].gain_ns == 99 * 2 * MS
    assert "expire_on_commit" in found[0].fix
    assert "the line of the commit takes 2.00 ms each time" in " ".join(found[0].evidence)


@pytest.mark.parametrize(
    ("places", "each_ms", "is_reported"), [(4, 50, True), (4, 49, False), (1, 199, False)]
)
def test_an_expensive_kind_of_statement_is_reported(
    places: int, each_ms: int, is_reported: bool
) -> None:
    """Statements that change the schema take a fifth of the run together."""
    one = profile_of(
        *(
            aggregate(
                f"CREATE TABLE t{n} (a)", (replace(SITE[0], line=n + 1),), ns=each_ms * MS, count=1
            )
            for n in range(places)
        )
    )
    found = findings(one, is_loop=False)
    assert [each.category for each in found] == ["heavy_query"] * is_reported
    if is_reported:
        assert found[0].gain_ns == places * each_ms * MS
        assert "4 schema changes in 4 places" in found[0].evidence[0]


@pytest.mark.parametrize(
    ("steps", "value", "is_reported", "is_running"),
    [
        (1_000_000, "sum(b) FROM t AS u WHERE u.a <= t.a", True, True),
        (1_000_000, "sum(b) FROM t AS u WHERE u.a = t.a", True, False),
        (1_000_000, "b FROM t AS u WHERE u.a <= t.a", True, False),
        (1_000_000, "EXISTS (SELECT ? FROM t AS u WHERE u.a > t.a)", True, False),
        (1_000_000, "NOT EXISTS (SELECT ? FROM t u WHERE u.b = (t.b) AND u.a > (t.a))", True, True),
        (1_000_000, "NOT EXISTS (SELECT ? FROM t u WHERE u.a < t.a AND u.b > t.b)", True, False),
        (1_000_000, "NOT EXISTS (SELECT ? FROM t u WHERE u.a < t.a)", True, False),
        (1_000_000, "NOT EXISTS (SELECT ? FROM t u WHERE u.a = t.a)", True, False),
        (1_000_000, "sum(b) FROM t AS u WHERE u.a <= t.b", True, False),
        (1_000_000, "sum(b) FROM other AS u WHERE u.a <= t.a", True, False),
        (1_000_000, "sum(b) FROM t AS u WHERE u.a <= t.a AND u.a >= t.a", True, False),
        (1_000_000, "count(DISTINCT b) FROM t AS u WHERE u.a <= t.a", True, False),
        (999_999, "sum(b) FROM t AS u WHERE u.a <= t.a", False, False),
    ],
)
def test_a_subquery_that_searches_many_rows_for_each(
    steps: int, value: str, is_reported: bool, is_running: bool
) -> None:
    """A running total takes 500 VM steps for each of 2,000 rows, although its plan looks good."""
    statement = f"SELECT a, (SELECT {value}) FROM t"
    one = aggregate(statement, SITE, ns=(900 if is_reported else 150) * MS, count=1)._replace(
        rows=2000, vm_steps=steps, counted=1
    )
    plan = "SEARCH t USING INDEX t_a (a>?)\nCORRELATED SCALAR SUBQUERY 1\n  SEARCH u USING INDEX t_a (a<?)"
    found = findings(
        replace(profile_of(one), plans=(Plan(statement, "app.db", plan),)), is_loop=False
    )
    assert [each.category for each in found] == ["correlated_subquery"] * is_reported
    if is_reported:
        assert (found[0].severity is Severity.LOW) != is_running
        assert found[0].fix.startswith("For each row, ") == is_running


def test_objects_of_a_relation_that_is_loaded_with_others() -> None:
    """SQLAlchemy's selectin loading loads the relation for all objects of the parent query."""
    loader = Frame(
        "_SelectInLoader._load", "/venv/site-packages/sqlalchemy/orm/strategies.py", 1, "library"
    )
    driver, time = loop(READ, 1, 1, pass_ns=20 * MS, count=1)
    driver = driver._replace(rows=500, self_ns=MS, total_ns=MS)
    one = replace(
        profile_of(driver),
        line_times=(time,),
        stack_samples=(StackSample(READ, (loader, *driver.path), 1, MS),),
    )
    (found,) = findings(one, is_loop=False)
    assert found.category == "many_objects"
    assert "lazyload(Model.relation)" in found.fix


class Appends(UnknownSourceLines):
    """Source whose lines only append to one attribute."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def attributes_appended_to(self, frame: Frame) -> frozenset[str]:
        return frozenset({self._attribute})


@pytest.mark.parametrize(("attribute", "is_appended"), [("lines", True), ("notes", False)])
def test_a_relation_that_is_loaded_only_to_append(attribute: str, is_appended: bool) -> None:
    driver, time = loop(READ, 20, 20, pass_ns=20 * MS, count=20)
    driver = driver._replace(rows=20 * 500, self_ns=20 * MS, total_ns=20 * MS)
    stack = (
        Frame(
            "_LazyLoader._emit", "/venv/site-packages/sqlalchemy/orm/strategies.py", 1, "library"
        ),
    )
    one = replace(
        profile_of(driver),
        line_times=(time,),
        notes={READ: "lazy load of Order.lines"},
        stack_samples=(StackSample(READ, (*stack, *driver.path), 1, MS),),
    )
    found = find_all(Report(one), lambda *_: None, {}, lines=Appends(attribute))[0]
    assert found.category == "many_objects"
    assert ("only appends to Order.lines" in found.fix) == is_appended
    assert found.severity is (Severity.HIGH if is_appended else Severity.LOW)
