"""Calls of a library or driver that one other call replaces."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of
from findings.line_profiles import MS, READ, SITE, findings, loop, profile

from queryprof.findings.finding import Finding
from queryprof.findings.line_times import execution_ns
from queryprof.model import (
    Distribution,
    Frame,
    Handoff,
    LineTime,
    Profile,
    StackSample,
    Thread,
    ThreadUsage,
)

pytestmark = pytest.mark.once

INSERT = "INSERT INTO t VALUES (?)"


def calling(one: Profile, package: str, *functions: str) -> Profile:
    """Return the same, called through functions of a package, innermost first."""
    frames = [
        Frame(name, f"/venv/site-packages/{package}/x.py", 1, "library") for name in functions
    ]
    stacks = tuple(
        StackSample(each.statement, (*frames, *each.path), 64, each.self_ns)
        for each in one.aggregates
    )
    return replace(one, stack_samples=stacks)


def of(profile: Profile, statement: str) -> Finding:
    (found,) = (one for one in findings(profile) if one.statement == statement)
    return found


@pytest.mark.parametrize(("outermost", "is_delete"), [("_delete_impl", True), ("get", False)])
def test_a_delete_that_loads_related_objects(outermost: str, is_delete: bool) -> None:
    """`selectinload()` in the parent query would load them as well, and delete them one by one."""
    one = calling(profile(loop(READ, 60, 60)), "sqlalchemy", "_LazyLoader.load", f"S.{outermost}")
    fix = of(replace(one, notes={READ: "lazy load of all Project.tasks"}), READ).fix
    assert ("passive_deletes=True" in fix, "selectinload" in fix) == (is_delete, not is_delete)


@pytest.mark.parametrize(("name", "is_index"), [("QuerySet.__getitem__", True), ("first", False)])
def test_an_object_that_is_read_by_its_position(name: str, is_index: bool) -> None:
    """Django executes a query with another OFFSET for each position, and no WHERE."""
    text = "SELECT a FROM t ORDER BY a LIMIT ? OFFSET ?"
    found = findings(calling(profile(loop(text, 60, 60)), "django", name))
    assert any("objects = list(queryset)" in one.fix for one in found) == is_index


@pytest.mark.parametrize(
    ("texts", "executions", "is_one"),
    [
        (("CREATE TABLE a (x)", "DROP TABLE a"), 2, True),
        (("CREATE TABLE a (x)", "DROP TABLE a"), 1, False),
        (("CREATE TABLE a (x)", "CREATE TABLE b (x)"), 2, False),  # in other files
        (("CREATE TABLE a AS SELECT x FROM b", "DROP TABLE a"), 2, False),
    ],
)
def test_a_schema_that_is_created_again(
    texts: tuple[str, ...], executions: int, is_one: bool
) -> None:
    """A test suite drops and creates its tables for each test."""
    some = [aggregate(text, SITE, ns=300 * MS, count=executions) for text in texts]
    found = findings(profile_of(*some), is_loop=False)
    assert any("create the tables and indexes once" in one.fix for one in found) == is_one
    assert any(one.severity.value == "medium" for one in found) == is_one


@pytest.mark.parametrize(("others", "is_all"), [(11, True), (12, False)])
def test_a_line_that_also_changes_the_schema_is_no_read_of_it(others: int, is_all: bool) -> None:
    driver = aggregate("PRAGMA table_info(t)", ns=250 * MS, count=12)
    time = LineTime(driver.statement, driver.path, 1, 12, others, 900 * MS)
    (found,) = findings(replace(profile_of(driver), line_times=(time,)), is_loop=False)
    assert found.gain_ns == (900 if is_all else 250) * MS


@pytest.mark.parametrize(
    ("text", "system", "ms", "is_slow"),
    [
        (INSERT, "duckdb", 50, True),
        (INSERT, "duckdb", 49, False),
        (INSERT, "sqlite", 50, False),
        (f"{INSERT} ON CONFLICT DO NOTHING", "duckdb", 50, False),
        ("INSERT INTO t VALUES ((SELECT ?))", "duckdb", 50, False),
    ],
)
def test_executemany_of_duckdb_inserts_one_row_after_the_other(
    text: str, system: str, ms: int, is_slow: bool
) -> None:
    insert = aggregate(text, SITE, ns=10 * ms * MS, count=10)._replace(operation="executemany")
    one = replace(profile_of(insert), systems={text: system})
    found = [each for each in findings(one, is_loop=False) if "with a DataFrame" in each.fix]
    assert [each.category for each in found] == ["single_inserts"] * is_slow
    assert all(each.gain_ns == 0.96 * 10 * ms * MS for each in found)


@pytest.mark.parametrize(
    ("threads", "is_given", "is_jobs"), [(1, True, False), (2, True, True), (2, False, False)]
)
def test_jobs_of_a_pool_have_no_loop_around_them(
    threads: int, is_given: bool, is_jobs: bool
) -> None:
    """A web server has a thread for each request, but the program gives it no jobs."""
    writes = [
        aggregate(text, ns=ns, count=100)._replace(thread=Thread(1, f"pool_{number}"))
        for number in range(threads)
        for text, ns in ((INSERT, 10 * MS), ("COMMIT", 200 * MS))
    ]
    none = Distribution()
    given = Handoff("thread pool", (MAIN,), "", 100, 0, 0, none, none, none, none)
    one = replace(profile_of(*writes), handoffs=(given,) * is_given)
    fixes = " ".join(each.fix for each in findings(one, is_loop=False))
    assert ("Let one thread write" in fixes) == is_jobs


@pytest.mark.parametrize(("rows", "is_sure"), [(361, True), (359, False)])
def test_a_recursive_function_has_no_rows_to_join(rows: int, is_sure: bool) -> None:
    """A function that calls itself for each row of its query walks a tree."""
    own = Frame("size", "/app/tree.py", 3, "user", 1)
    inner = Frame("size.<locals>.<genexpr>", "/app/tree.py", 3, "user", 3)
    driver = aggregate(READ, (own, inner, own, MAIN), ns=400 * MS, count=400)._replace(rows=rows)
    found = of(profile_of(driver), READ)
    assert "WITH RECURSIVE" in found.fix
    assert (found.doubt == "") == is_sure


@pytest.mark.parametrize(
    ("executions", "others", "is_known"), [(9, 0, True), (10, 0, False), (9, 1, False)]
)
def test_passes_of_a_recursion_that_include_no_others(
    executions: int, others: int, is_known: bool
) -> None:
    """A pass with one execution includes no execution of an inner pass."""
    path = tuple(Frame("size", "/app/tree.py", line, "user", 1) for line in (3, 4))
    time = LineTime(READ, path, 9, executions, others, 90 * MS)
    assert execution_ns([time], rows=0, executions=400) == (10 * MS if is_known else None)


@pytest.mark.parametrize(
    ("lock_ms", "max_lock_ms", "line_ms"),
    [
        (0, 0, 10),
        (60, 60, 4),  # the longest wait may be in the timed passes
        (101, 101, 8.99),  # the longest wait is longer than they are: only its share
        (400, 2, 6),  # each execution waits for 4 ms
        (2000, 20, 0),
    ],
)
def test_a_line_s_time_leaves_out_waits_for_locks(
    lock_ms: int, max_lock_ms: int, line_ms: float
) -> None:
    """Ten of a hundred executions were timed, with 10 ms each."""
    time = LineTime(READ, SITE, passes=10, executions=10, others=0, ns=100 * MS)
    found = execution_ns([time], 0, 100, lock_ms * MS, max_lock_ms * MS)
    assert found == pytest.approx(line_ms * MS)


@pytest.mark.parametrize(
    ("source", "is_parsed"), [("read_csv(?)", True), ("read_parquet(?)", False)]
)
def test_a_text_file_that_each_query_parses(source: str, is_parsed: bool) -> None:
    text = f"SELECT sum(a) FROM {source} WHERE b = ?"
    driver = aggregate(text, SITE, ns=400 * MS, count=40)
    found = of(replace(profile_of(driver), systems={text: "duckdb"}), text)
    assert found.fix.startswith("Each execution reads and parses the file again") == is_parsed


@pytest.mark.parametrize(
    ("text", "line_us", "cpu_ms", "is_unusual"),
    [
        (READ, 2291, 1000, True),
        (READ, 2280, 1000, False),
        (READ, 2291, 990, False),
        (READ, 4600, 500, True),  # half of the time, the thread waited for a processor
        (READ, 4500, 500, False),
        ("SELECT a FROM t WHERE b IN (...)", 2291, 1000, False),
        ("SELECT a FROM t JOIN s ON t.id = s.id WHERE b = ?", 2291, 1000, False),
    ],
)
def test_a_library_that_works_ten_times_as_long_as_usual(
    text: str, line_us: int, cpu_ms: int, is_unusual: bool
) -> None:
    """Reading an object of one row takes 0.228 ms, and the driver 10 us of the line. The program
    runs for a second.
    """
    assert does_unusual_work(text, 60, line_us, cpu_ms) == is_unusual


@pytest.mark.parametrize(("fetches", "is_unusual"), [(7, True), (8, False)])
def test_a_type_may_decode_large_values(fetches: int, is_unusual: bool) -> None:
    assert does_unusual_work(READ, 60, 2291, 1000, fetches) == is_unusual


def does_unusual_work(text: str, passes: int, line_us: int, cpu_ms: int, fetches: int = 3) -> bool:
    """Return whether the finding about 60 executions says that the library works too long."""
    timed = loop(text, passes, passes, pass_ns=line_us * 1000, count=60)
    one = calling(profile(timed), "sqlalchemy", "execute")
    reads = [
        each._replace(
            rows=each.count, page_fetches=fetches * each.count, page_fetch_samples=each.count
        )
        for each in one.aggregates
    ]
    none = None, None, None, None
    usage = ThreadUsage(Thread(1, "MainThread"), cpu_ms * MS, 0, 1, 1, *none, 1000 * MS, ())
    found = of(replace(one, aggregates=tuple(reads), thread_usage=(usage,)), text)
    return any("Check that echo=True is off" in each for each in found.evidence)


@pytest.mark.parametrize(
    ("name", "line_ms", "reported"),
    [("to_sql", 201, "low"), ("to_sql", 199, ""), ("S._execute_insert_multi", 201, "medium")],
)
def test_a_library_that_takes_much_of_the_time(name: str, line_ms: int, reported: str) -> None:
    """The program runs for a second, and the statement takes 1 ms of it."""
    driver, time = loop(INSERT, 1, 1, pass_ns=line_ms * MS, count=1)
    one = calling(profile((driver._replace(self_ns=MS, total_ns=MS), time)), "pandas", name)
    found = findings(one, is_loop=False)
    assert [each.severity.value for each in found] == [reported] * bool(reported)
    assert all(each.is_unexplained == (reported == "low") for each in found)
