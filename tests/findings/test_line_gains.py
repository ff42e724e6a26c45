"""Savings in a loop that calls a library, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.line_profiles import MS, PEEWEE, READ, SITE, WRITE, findings, loop, only, profile

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import Severity
from queryprof.findings.line_times import execution_ns
from queryprof.model import Frame, LineTime, StackSample, Thread

pytestmark = pytest.mark.once


def test_a_loop_wins_the_passes_of_its_line() -> None:
    """It saves all but one of 100 passes of 6 ms. The run takes one second."""
    found = only(profile(loop(READ, passes=60, executions=60, pass_ns=6 * MS)))
    assert found.category == "n_plus_one"
    assert found.gain_ns == 99 * 6 * MS
    assert found.severity is Severity.HIGH
    assert "the line takes 6.00 ms each time" in found.evidence[0]
    assert not found.is_least


@pytest.mark.parametrize(
    ("passes", "count", "is_known"), [(1, 19, True), (1, 20, False), (2, 20, True)]
)
def test_a_single_pass_of_many_executions_may_be_the_first(
    passes: int, count: int, is_known: bool
) -> None:
    times = [LineTime(READ, SITE, passes, passes, 0, passes * MS)]
    assert (execution_ns(times, count, count) is not None) == is_known


@pytest.mark.parametrize(("timed", "said"), [(49, " (49 of 100 executions timed)"), (50, "")])
def test_a_time_from_few_passes_says_so(timed: int, said: str) -> None:
    driver, time = loop(READ, passes=timed, executions=timed, pass_ns=6 * MS)
    found = only(profile((driver, time)))
    assert any(one.endswith(f"6.00 ms each time{said}") for one in found.evidence)


def test_a_gain_is_never_below_the_driver_s_time() -> None:
    """Only a few passes were timed, and these were short."""
    driver, time = loop(READ, passes=4, executions=4, pass_ns=MS // 1000)
    found = only(profile((driver._replace(self_ns=200 * MS, total_ns=200 * MS), time)))
    assert found.gain_ns == round(200 * MS * 0.99)


def test_a_loop_whose_line_was_not_timed_wins_at_least_the_driver_s_time() -> None:
    driver, _ = loop(READ, 0, 0)
    found = only(profile((driver._replace(self_ns=10 * MS, total_ns=10 * MS), None)))
    assert found.gain_ns == round(10 * MS * 0.99)
    assert "the time of peewee was not measured, so the gain may be larger" in found.evidence[0]
    assert found.is_least


@pytest.mark.parametrize(("executions", "is_counted"), [(89, True), (90, False)])
def test_a_call_that_executes_several_loops_itself(executions: int, is_counted: bool) -> None:
    """A call counts as one from 1.5 executions on average."""
    found = findings(profile(loop(READ, passes=60, executions=executions)))
    assert (bool(found) and found[0].gain_ns > 100 * MS) == is_counted


def test_statements_of_one_call_are_one_finding() -> None:
    """The finding is at the written row, although the query before it takes longer."""
    inside = loop(READ, passes=60, executions=60, others=60)
    inside = (inside[0]._replace(self_ns=50 * MS), inside[1])
    found = only(profile(inside, loop(WRITE, passes=60, executions=60, others=60)))
    assert (found.category, found.statement) == ("single_inserts", WRITE)
    assert found.gain_ns == round(99 * (2 * MS - 10_000))
    assert "insert_many" in found.fix


def test_two_calls_of_one_line_with_the_same_fix_are_one_finding() -> None:
    """A generic foreign key loads each object from one of two tables."""
    other = "SELECT c FROM u WHERE b = ?"
    one = only(profile(loop(READ, 60, 60)))
    both = only(profile(loop(READ, 60, 60), loop(other, 60, 60)))
    assert both.gain_ns == 2 * one.gain_ns
    assert other in both.evidence[-1] or READ in both.evidence[-1]
    assert (both.fix, both.doubt) == (one.fix, one.doubt)


def test_two_calls_of_one_line_with_different_fixes_are_two_findings() -> None:
    other = "SELECT sum(c) FROM u WHERE d = ?"
    found = findings(profile(loop(READ, 60, 60), loop(other, 60, 60)))
    assert {one.statement for one in found} == {READ, other}


@pytest.mark.parametrize(("count", "is_one"), [(20, True), (19, False)])
def test_twenty_rows_are_a_loop(count: int, is_one: bool) -> None:
    found = findings(profile(loop(WRITE, 20, 20, count=count)))
    assert bool(found) == is_one


def test_a_row_here_and_there_is_no_loop() -> None:
    """Each request inserts one row."""
    assert findings(profile(loop(WRITE, 60, 60)), is_loop=False) == ()


def test_a_driver_that_is_called_without_a_library_inserts_no_slower_by_row() -> None:
    driver, _ = loop(WRITE, 0, 0)
    (found,) = findings(profile_of(driver._replace(self_ns=200 * MS)))
    assert (found.category, found.severity) == ("heavy_query", Severity.LOW)
    assert "executemany()" in found.fix


def test_no_gain_is_above_the_run() -> None:
    """The estimate is from calls that took longer than the others."""
    found = only(profile(loop(READ, passes=60, executions=60, pass_ns=50 * MS)))
    assert (found.gain_ns, found.share) == (1000 * MS, 1.0)


@pytest.mark.parametrize(("rows", "is_one"), [(200, True), (201, False)])
def test_an_insert_of_several_rows_inserts_at_once(rows: int, is_one: bool) -> None:
    """Two rows per execution are a single insert: one row inserted and returned. More rows are a
    batch.
    """
    driver, time = loop(WRITE, 60, 60)
    assert bool(findings(profile((driver._replace(rows=rows), time)))) == is_one


def test_two_inserts_of_one_call_are_one_finding() -> None:
    """The call inserts a row into two tables, for one object."""
    other = "INSERT INTO u VALUES (?)"
    found = findings(profile(loop(WRITE, 60, 60, others=60), loop(other, 60, 60, others=60)))
    assert [one.category for one in found] == ["single_inserts"]


@pytest.mark.parametrize(("median_ns", "is_waiting"), [(1_500_000, True), (1_520_000, False)])
def test_threads_wait_for_each_other_in_a_gain(median_ns: int, is_waiting: bool) -> None:
    """The median is at most half of the mean, 3 ms. Threads that take turns do not wait."""
    driver, _ = loop(READ, 0, 0)
    both = {histogram_bucket(median_ns): 60, histogram_bucket(6 * MS): 40}
    driver = driver._replace(
        histogram=both, execution_max_ns=6 * MS, self_ns=300 * MS, total_ns=300 * MS
    )
    second = driver._replace(thread=Thread(1, "T"))
    found = only(replace(profile((driver, None), (second, None)), stack_samples=()))
    assert ("runs in 2 threads, which may wait" in found.doubt) == is_waiting


@pytest.mark.parametrize(
    ("median_ns", "severity"),
    [(1_200_000, Severity.MEDIUM), (600_000, Severity.LOW), (60_000, Severity.LOW)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_no_thread_has_to_wait_for_is_as_severe(
    threads: int, median_ns: int, severity: Severity
) -> None:
    """There are 200 executions of 3 ms in one second."""
    driver, _ = loop(READ, 0, 0)
    half = {histogram_bucket(median_ns): 60, histogram_bucket(6 * MS): 40}
    driver = driver._replace(
        histogram=half, execution_max_ns=6 * MS, self_ns=300 * MS, total_ns=300 * MS
    )
    second = driver._replace(thread=Thread(1, "T" if threads == 2 else "MainThread"))
    found = only(replace(profile((driver, None), (second, None)), stack_samples=()))
    assert found.severity is (severity if threads == 2 else Severity.HIGH)
    assert ("runs in 2 threads" in found.doubt) == (threads == 2)


@pytest.mark.parametrize(("statement", "is_one"), [(READ, True), ("SAVEPOINT ?", False)])
def test_names_of_savepoints_are_no_parameters(statement: str, is_one: bool) -> None:
    driver = aggregate(statement, SITE, ns=90 * MS, count=100)
    texts = replace(profile_of(driver), texts={statement: 100})
    found = find_all(Report(texts), lambda *_: None, {})
    assert [one.category for one in found if one.category == "re_prepare"] == [
        "re_prepare"
    ] * is_one


def test_dataset_has_its_own_words() -> None:
    """The library dataset executes through SQLAlchemy."""
    driver, time = loop(WRITE, 60, 60)
    frames = [
        Frame("do_execute", "/venv/site-packages/sqlalchemy/engine/default.py", 1, "library"),
        Frame("insert", "/venv/site-packages/dataset/table.py", 1, "library"),
    ]
    stack = StackSample(WRITE, (*frames, *SITE), 64, 1)
    one = replace(profile((driver, time)), stack_samples=(stack,))
    assert "table.insert_many(rows)" in only(one).fix


@pytest.mark.parametrize("calls", [-1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("executions", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("ns", [-(2**63), 0, 2**63 - 1])
def test_a_stranger_s_figures_promise_no_more_than_the_run(
    calls: int, executions: int, ns: int
) -> None:
    """A stranger's trace, or a row that a running process is changing, may have impossible
    figures.
    """
    driver, _ = loop(READ, 0, 0)
    for one in findings(profile((driver, LineTime(READ, SITE, calls, executions, 0, ns)))):
        assert 0 <= one.gain_ns <= 1000 * MS


@pytest.mark.parametrize(("call_ns", "is_one"), [(1_000_000, True), (999_999, False)])
def test_a_query_that_works_hard_is_a_loop_s_where_the_library_takes_more(
    call_ns: int, is_one: bool
) -> None:
    """The library must take half a millisecond longer than the driver. Otherwise each execution
    does too much work.
    """
    driver, time = loop(READ, 60, 60, pass_ns=call_ns)
    driver = driver._replace(self_ns=50 * MS, total_ns=50 * MS, vm_steps=100 * 5000, rows=100)
    found = findings(profile((driver, time)))
    assert ("n_plus_one" in [one.category for one in found]) == is_one


def test_a_statement_without_a_known_call_is_no_caller() -> None:
    """The library loops over two INSERTs per call."""
    several = loop(WRITE, passes=60, executions=120, others=60, count=200)
    one = only(profile(loop(READ, passes=60, executions=60, others=120), several))
    assert (one.category, one.statement) == ("n_plus_one", READ)


@pytest.mark.parametrize(("own", "found"), [(0, 1), (180, 1), (182, 2)])
def test_what_a_library_executes_for_itself_beside_others_hides_no_loop(
    own: int, found: int
) -> None:
    """With DEBUG, Django logs its queries by running one more query each. Two relations in one line
    are two loops.
    """
    note = Frame(
        "DatabaseOperations._quote_params_for_last_executed_query",
        "/venv/site-packages/django/o.py",
        1,
        "library",
    )
    other = "SELECT sum(c) FROM u WHERE d = ?"
    two = profile(loop(READ, 60, 60, others=60), loop(other, 60, 60, others=60))
    quote = aggregate("SELECT QUOTE(?)", SITE, ns=MS, count=own or 1)
    stack = StackSample(quote.statement, (note, PEEWEE, *SITE), 64, 1)
    one = replace(
        two,
        aggregates=(*two.aggregates, *[quote][:own]),
        stack_samples=(*two.stack_samples, *[stack][:own]),
    )
    assert len([each for each in findings(one) if each.category == "n_plus_one"]) == found


@pytest.mark.parametrize(
    ("library", "executions", "fix"),
    [
        ("django", 50, '.prefetch_related("lines__book")'),
        ("sqlalchemy", 50, ".options(selectinload(Order.lines).selectinload(Line.book))"),
        (
            "django",
            19,
            '`.select_related("PATH__book")`. Replace PATH by the relations from the parent query',
        ),
    ],
)
def test_what_is_loaded_for_what_is_loaded_in_a_loop(
    library: str, executions: int, fix: str
) -> None:
    """One query comes before both loops. Changing only the inner loop would undo the fix of the
    outer one.
    """
    loader = {"django": "ForwardManyToOneDescriptor.__get__", "sqlalchemy": "_LazyLoader._load"}[
        library
    ]
    frame = Frame(loader, f"/venv/site-packages/{library}/x.py", 1, "library")
    outer, _ = loop(READ, 0, 0, count=executions)
    inner, _ = loop("SELECT t FROM book WHERE id = ?", 0, 0, count=500)
    one = replace(
        profile((outer._replace(rows=500), None), (inner, None)),
        stack_samples=(StackSample(inner.statement, (frame, *SITE), 64, 1),),
        notes={READ: "lazy load of all Order.lines", inner.statement: "lazy load of Line.book"},
    )
    found = {each.statement: each for each in findings(one)}[inner.statement]
    assert fix in found.fix


PRELOAD = Frame(
    "SelectInLoader._load_for_path", "/venv/site-packages/sqlalchemy/x.py", 1, "library"
)


@pytest.mark.parametrize(
    ("table", "frames", "fix"),
    [
        ("shop_line", (), ".options(selectinload(Line.book))"),
        ("lines", (), ".options(selectinload(Line.book))"),
        ("orders", (), ".options(PATH.selectinload(Line.book))"),
        ("lines", (PRELOAD,), ".options(PATH.selectinload(Line.book))"),
    ],
)
def test_the_path_to_the_objects_is_shown(table: str, frames: tuple[Frame, ...], fix: str) -> None:
    """The objects may belong to another query, or to one that the object mapper runs behind it."""
    frame = Frame("_LazyLoader._load", "/venv/site-packages/sqlalchemy/x.py", 1, "library")
    outer, _ = loop(f"SELECT id FROM {table}", 0, 0, count=20)
    inner, _ = loop("SELECT t FROM book WHERE id = ?", 0, 0, count=500)
    one = replace(
        profile((outer._replace(rows=500), None), (inner, None)),
        stack_samples=(
            StackSample(inner.statement, (frame, *SITE), 64, 1),
            StackSample(outer.statement, (*frames, *SITE), 64, 1),
        ),
        notes={inner.statement: "lazy load of Line.book"},
    )
    found = {each.statement: each for each in findings(one)}[inner.statement]
    assert fix in found.fix


@pytest.mark.parametrize(("count", "is_reported"), [(84, True), (83, False)])
def test_other_loads_of_a_line_are_reported(count: int, is_reported: bool) -> None:
    """A lazy load runs about as often, and its time is part of the line's time."""
    frame = Frame("_LazyLoader._load", "/venv/site-packages/sqlalchemy/x.py", 1, "library")
    book, publisher = "SELECT t FROM book WHERE id = ?", "SELECT n FROM publisher WHERE id = ?"
    loops = loop(book, 60, 60, others=60), loop(publisher, 50, 50, others=50, count=count)
    one = replace(
        profile(*loops),
        stack_samples=tuple(StackSample(text, (frame, *SITE), 64, 1) for text in (book, publisher)),
        notes={book: "lazy load of Line.book", publisher: "lazy load of Book.publisher"},
    )
    found = {each.statement: each for each in findings(one)}[book]
    assert ("Its line also loads Book.publisher:" in found.fix) == is_reported


@pytest.mark.parametrize(("rows_each", "gain_ns"), [(1, 100 * MS), (10, 0.37 * 100 * MS)])
def test_rows_are_fetched_by_the_join_as_well(rows_each: int, gain_ns: float) -> None:
    """A join saves three tenths of the time of rows after the first of each query."""
    parent, _ = loop("SELECT id FROM parent", 0, 0, count=1)
    child, _ = loop("SELECT name FROM child WHERE parent = ?", 0, 0, count=100)
    fetch = child._replace(
        operation="fetchall", rows=100 * rows_each, self_ns=100 * MS, total_ns=100 * MS
    )
    one = profile(
        (parent._replace(rows=100), None),
        (child._replace(self_ns=0, total_ns=0), None),
        (fetch, None),
    )
    (found,) = [each for each in findings(one) if each.category == "n_plus_one"]
    assert found.gain_ns == pytest.approx(gain_ns, rel=0.02)


@pytest.mark.parametrize(("rows_each", "is_in"), [(20, True), (21, False)])
def test_so_many_rows_are_read_by_no_in(rows_each: int, is_in: bool) -> None:
    parent, _ = loop("SELECT id FROM parent", 0, 0, count=1)
    child, _ = loop("SELECT name FROM child WHERE parent = ?", 0, 0, count=100)
    child = child._replace(rows=100 * rows_each, self_ns=100 * MS, total_ns=100 * MS)
    one = replace(profile((parent._replace(rows=100), None), (child, None)), stack_samples=())
    (found,) = [each for each in findings(one) if each.category == "n_plus_one"]
    assert ("or fetch all rows with one WHERE ... IN" in found.fix) == is_in


@pytest.mark.parametrize(("module", "saved_ms"), [("sqlalchemy", 144), ("other", 63)])
def test_an_object_mapper_also_compiles_each_text(module: str, saved_ms: int) -> None:
    """Each of 100 executions takes 0.9 ms in the driver; the line takes 3 ms."""
    driver, time = loop(READ, 100, 100, pass_ns=3 * MS, count=100)
    driver = driver._replace(self_ns=90 * MS, total_ns=90 * MS)
    library = Frame("execute", f"/venv/site-packages/{module}/engine/base.py", 1, "library")
    one = replace(
        profile((driver, time)),
        texts={READ: 100},
        stack_samples=(StackSample(READ, (library, *driver.path), 100, MS),),
    )
    (found,) = [each for each in find_all(Report(one), lambda *_: None, {}) if each.code]
    assert (found.category, found.gain_ns) == ("re_prepare", pytest.approx(saved_ms * MS, rel=0.01))


@pytest.mark.parametrize(
    ("condition", "saved_ms", "is_list"), [("b = ?", 144, False), ("b IN (?)", 63, True)]
)
def test_texts_that_differ_in_a_list(condition: str, saved_ms: int, is_list: bool) -> None:
    """The values of the list may be parameters. SQLAlchemy compiles the query once."""
    statement = f"SELECT a, c FROM t WHERE {condition}"
    driver, time = loop(statement, 100, 100, pass_ns=3 * MS, count=100)
    driver = driver._replace(self_ns=90 * MS, total_ns=90 * MS)
    library = Frame("execute", "/venv/site-packages/sqlalchemy/engine/base.py", 1, "library")
    one = replace(
        profile((driver, time)),
        texts={statement: 100},
        stack_samples=(StackSample(statement, (library, *driver.path), 100, MS),),
    )
    (found,) = (
        each for each in find_all(Report(one), lambda *_: None, {}) if each.category == "re_prepare"
    )
    assert found.gain_ns == pytest.approx(saved_ms * MS, rel=0.01)
    assert ("only in their lengths" in found.doubt) == is_list
    assert ("If they are parameters already" in found.fix) == is_list
