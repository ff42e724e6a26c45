"""The choice among several causes, and its words, on profiles made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.plans import Steps
from queryprof.analysis.report import Report
from queryprof.findings.choices import choose_between_findings
from queryprof.findings.find import _merge_consequence, find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.locks import Consequence
from queryprof.model import Frame, Plan, Profile, StackSample, Thread
from queryprof.model.loops import Cause, Distribution, Loop, Step
from queryprof.planner.facts import IndexHelp, NoPlanner

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a FROM t WHERE b = ?"


def findings(profile: Profile, loop_line: int = 1) -> tuple[Finding, ...]:
    """Return the findings of a program that runs for one second."""

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=loop_line) if frame.function == MAIN.function else None

    return find_all(Report(profile), loop, {})


@pytest.mark.parametrize(("pages", "is_large"), [(8, True), (7.9, False)])
def test_large_values_belong_in_no_index(pages: float, is_large: bool) -> None:
    one = aggregate(READ, SITE, ns=300 * MS, count=100)._replace(
        rows=10_000,
        vm_steps=100 * 500,
        page_fetches=round(100 * 100 * pages),
        page_fetch_samples=100,
    )
    plan = Plan(READ, "/app/t.db", "SEARCH t USING INDEX t_b (b=?)")
    (found,) = findings(replace(profile_of(one), plans=(plan,)))
    assert found.category == ("large_values" if is_large else "missing_covering_index")
    assert ("List only the columns that you need in SELECT" in found.fix) == is_large
    assert ("then the index covers the query" in found.fix) != is_large


@pytest.mark.parametrize(("line", "is_loop"), [(MAIN.line, True), (MAIN.line - 1, False)])
def test_a_loop_around_a_query_and_its_parent_is_not_the_one(line: int, is_loop: bool) -> None:
    """One line calls a function that executes both queries: a template, with the loop in
    between.
    """
    parent = aggregate("SELECT b FROM s", SITE, ns=MS, count=1)._replace(rows=100)
    one = aggregate(READ, SITE, ns=300 * MS, count=100)
    found = {each.statement: each for each in findings(profile_of(parent, one), line)}[READ]
    assert found.category == "n_plus_one"
    assert bool(found.loop) == is_loop


def test_a_search_in_a_full_text_table_is_joined_with_nothing() -> None:
    search = "SELECT a FROM doc WHERE doc MATCH ? ORDER BY rank"
    one = profile_of(aggregate(search, SITE, ns=200 * MS, count=100))
    plans = (Plan(search, "/app/t.db", "SCAN doc VIRTUAL TABLE INDEX 0:M1"),)
    assert [each.category for each in findings(one)] == ["n_plus_one"]
    assert [each.category for each in findings(replace(one, plans=plans))] == ["heavy_query"]


@pytest.mark.parametrize(
    ("rows", "first", "plan", "fix"),
    [
        (
            101,
            "SELECT a FROM t WHERE b = ? LIMIT ?",
            "SEARCH t USING INDEX i (b=?)",
            "row_number()",
        ),
        (
            100,
            "SELECT a FROM t WHERE b = ? LIMIT ?",
            "SEARCH t USING INDEX i (b=?)",
            "Join the two",
        ),
        (100, "SELECT a FROM t WHERE b = ? ORDER BY a LIMIT ?", "SEARCH t (b=?)", "row_number()"),
        (
            100,
            "SELECT a FROM t WHERE b = ? ORDER BY a LIMIT ?",
            "SEARCH t (rowid=?)",
            "Join the two",
        ),
        (100, "SELECT count(*) FROM t WHERE b = ?", "SEARCH t (b=?)", "with one query (GROUP BY"),
        (101, "SELECT count(*) FROM t WHERE b = ?", "SEARCH t (b=?)", "Join the two"),
        (100, "SELECT sum(a) FROM t WHERE b = ? GROUP BY a", "SEARCH t (b=?)", "Join the two"),
    ],
)
def test_the_first_rows_of_each_are_numbered(rows: int, first: str, plan: str, fix: str) -> None:
    """The fix numbers the rows of each group, or groups a sum."""
    parent = aggregate("SELECT b FROM s", (MAIN,), ns=MS, count=1)._replace(rows=100)
    one = aggregate(first, SITE, ns=300 * MS, count=100)._replace(rows=rows)
    profile = replace(profile_of(parent, one), plans=(Plan(first, "app.db", plan),))
    found = {each.statement: each for each in findings(profile)}[first]
    assert fix in found.fix


class ServedBy(NoPlanner):
    """A planner that knows the schema, and uses an index if one is proposed."""

    def __init__(self, code: str) -> None:
        self._code = code

    def index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp:
        return IndexHelp(plans[0], self._code, ("b",) if self._code else ())


@pytest.mark.parametrize(
    ("count", "code", "severity"),
    [
        (2, "CREATE INDEX t_b ON t (b);", Severity.MEDIUM),
        (2, "", Severity.LOW),
        (3, "CREATE INDEX t_b ON t (b);", Severity.HIGH),
        (3, "", Severity.MEDIUM),
    ],
)
def test_a_scan_that_ran_once(count: int, code: str, severity: Severity) -> None:
    """A single scan may have to read all rows, even more so if no index would help."""
    one = aggregate(READ, SITE, ns=300 * MS, count=count)._replace(
        rows=count, full_scan_steps=50_000 * count, vm_steps=300_000 * count, counted=count
    )
    profile = replace(profile_of(one), plans=(Plan(READ, "/app/t.db", "SCAN t"),))
    (found,) = find_all(Report(profile), lambda *_: None, {}, ServedBy(code))
    assert (found.category, found.severity) == ("full_scan", severity)


def on_loop(each_ns: int, is_on_loop: bool) -> Profile:
    """Return a hundred executions in the steps of a coroutine, or in a thread."""
    frame = QUERY if is_on_loop else replace(QUERY, line=QUERY.line + 1)
    cause = Cause(READ, (frame, MAIN), 100, 100 * each_ns)
    steps = Step(MAIN, Distribution(100, 100 * each_ns, each_ns), 100 * each_ns, 0, (cause,))
    loop = Loop(
        "asyncio",
        Thread(1, "MainThread"),
        has_steps=True,
        runs=1,
        run_ns=10**9,
        busy_ns=10**9,
        steps=100,
        waiting=0,
        waiting_max=0,
        timer_lag=Distribution(),
        beat_lag=Distribution(),
        functions=(steps,),
        stalls=(),
    )
    # The executions take a third of the run.
    process_ns = 300 * each_ns
    profile = profile_of(aggregate(READ, SITE, ns=100 * each_ns, count=100))
    processes = tuple(replace(one, end_unix_ns=process_ns) for one in profile.processes)
    return replace(profile, loops=(loop,), processes=processes)


@pytest.mark.parametrize(
    ("each_ns", "is_on_loop", "category"),
    [
        (MS, True, "blocked_loop"),
        (MS - 1, True, "heavy_query"),
        (MS, False, "heavy_query"),
    ],
)
def test_what_takes_much_of_a_loop_s_time_blocks_it(
    each_ns: int, is_on_loop: bool, category: str
) -> None:
    """This holds even if no step is a stall."""
    found = find_all(Report(on_loop(each_ns, is_on_loop)), lambda *_: None, {})
    assert [one.category for one in found] == [category]
    assert found[0].severity is (Severity.MEDIUM if category == "blocked_loop" else Severity.LOW)


@pytest.mark.parametrize(
    ("is_on_loop", "runs_ms", "count"), [(True, 1000, 1), (True, 1001, 0), (False, 1000, 0)]
)
def test_a_tenth_of_the_run_is_much_of_a_loop_s_time(
    is_on_loop: bool, runs_ms: int, count: int
) -> None:
    """No callback runs meanwhile. For other statements the limit is a third."""
    profile = on_loop(MS, is_on_loop)
    process = replace(profile.processes[0], end_unix_ns=runs_ms * MS)
    assert (
        len(find_all(Report(replace(profile, processes=(process,))), lambda *_: None, {})) == count
    )


def finding(category: str, severity: Severity, gain_ms: int) -> Finding:
    return Finding(
        category,
        severity,
        gain_ms / 1000,
        gain_ms * MS,
        READ,
        CallSite(QUERY),
        None,
        (category,),
        "",
        "",
        "",
    )


@pytest.mark.parametrize(
    ("cause", "is_of_work", "first", "gain_ms", "severity"),
    [
        (finding("full_scan", Severity.HIGH, 300), True, "full_scan", 300, Severity.HIGH),
        (finding("full_scan", Severity.LOW, 3), True, "full_scan", 30, Severity.MEDIUM),
        (finding("full_scan", Severity.LOW, 3), False, "lock_wait", 30, Severity.MEDIUM),
        (
            finding("commit_per_write", Severity.HIGH, 61),
            True,
            "commit_per_write",
            61,
            Severity.HIGH,
        ),
        (
            finding("commit_per_write", Severity.LOW, 3),
            True,
            "commit_per_write",
            30,
            Severity.MEDIUM,
        ),
        (
            finding("commit_per_write", Severity.HIGH, 61),
            False,
            "commit_per_write",
            61,
            Severity.HIGH,
        ),
        (finding("commit_per_write", Severity.HIGH, 60), False, "lock_wait", 30, Severity.MEDIUM),
    ],
)
def test_of_two_changes_the_one_that_wins_most(
    cause: Finding, is_of_work: bool, first: str, gain_ms: int, severity: Severity
) -> None:
    """The change keeps its own severity. If there is only one, it gets the higher one of cause and
    consequence.
    """
    waits = finding("lock_wait", Severity.MEDIUM, 30)
    found = _merge_consequence(cause, Consequence(waits, is_of_work))
    assert (found.category, found.gain_ns, found.severity) == (first, gain_ms * MS, severity)
    assert set(found.evidence) == {cause.category, "lock_wait"}


def test_stalls_are_a_part_of_what_blocks_a_loop() -> None:
    """The finding has the higher severity of both."""
    much, stalls = (
        finding("blocked_loop", Severity.MEDIUM, 60),
        finding("blocked_loop", Severity.HIGH, 30),
    )
    found = _merge_consequence(replace(much, doubt="?"), Consequence(stalls, is_of_work=True))
    assert (found.gain_ns, found.severity, found.doubt) == (60 * MS, Severity.HIGH, "")


@pytest.mark.parametrize("parent_rows", [100, 5])
def test_what_is_changed_for_each_row_of_a_query_names_it(parent_rows: int) -> None:
    parent = aggregate("SELECT id FROM p", SITE, ns=MS, count=1)._replace(rows=parent_rows)
    change = aggregate("UPDATE t SET a = ? WHERE id = ?", SITE, ns=90 * MS, count=100)
    (found,) = (
        one
        for one in findings(profile_of(parent, change._replace(rows=100)))
        if one.category == "single_changes"
    )
    assert found.fix.startswith("If SQL can compute the new values, change all rows")
    message = "once per row of SELECT id FROM p (100 rows)"
    assert (message in found.evidence) == (parent_rows == 100)


GET, CLOSE = Frame("get", "/app/db.py", 30), Frame("release", "/app/db.py", 40)


@pytest.mark.parametrize(
    ("opening", "executing", "others", "is_one"),
    [
        ((QUERY, MAIN), (QUERY, MAIN), 0, True),
        ((GET, QUERY, MAIN), (QUERY, MAIN), 900, True),  # a helper opens
        ((GET, MAIN), (QUERY, MAIN), 0, True),  # siblings
        ((GET, MAIN), (QUERY, MAIN), 900, False),
        ((GET,), (QUERY, MAIN), 0, True),  # in another thread
    ],
)
def test_connections_are_opened_for_what_their_function_s_caller_executes(
    opening: tuple[Frame, ...], executing: tuple[Frame, ...], others: int, is_one: bool
) -> None:
    """The connection is the cause, not the query's loop. Other statements use their own
    connections.
    """
    connect = aggregate("(connect)", opening, ns=20 * MS, count=100)._replace(operation="connect")
    query = aggregate(READ, executing, ns=80 * MS, count=100)
    other = aggregate("INSERT INTO u VALUES (?)", (MAIN,), ns=MS, count=max(others, 1))
    found = findings(profile_of(connect, query, other) if others else profile_of(connect, query))
    of_connections = [one for one in found if one.category == "connection_per_query"]
    assert bool(of_connections) == is_one
    if is_one and len(opening) > 1:
        assert {one.category for one in found} == {"connection_per_query"}
        assert of_connections[0].gain_ns == pytest.approx((20 + 0.78 * 80) * MS)


def test_rows_that_a_connection_s_first_statement_fetches_are_no_cost_of_it() -> None:
    connect = aggregate("(connect)", SITE, ns=20 * MS, count=100)._replace(operation="connect")
    query = aggregate(READ, SITE, ns=10 * MS, count=100)
    fetched = aggregate(READ, SITE, ns=300 * MS, count=100, operation="fetchall")
    found = findings(profile_of(connect, query, fetched))
    (one,) = (one for one in found if one.category == "connection_per_query")
    assert one.gain_ns == pytest.approx((20 + 0.78 * 10) * MS)


@pytest.mark.parametrize("has_threads", [True, False])
def test_a_thread_for_each_connection_is_not_in_its_time(has_threads: bool) -> None:
    connect = aggregate("(connect)", SITE, ns=200 * MS, count=100)._replace(operation="connect")
    query = aggregate(READ, SITE, ns=10 * MS, count=100)
    frame = Frame("connect", "/venv/site-packages/aiosqlite/core.py", 1, "library")
    stack = StackSample("(connect)", (frame, *SITE), 64, 1)
    stacks = (stack,) * has_threads
    found = findings(replace(profile_of(connect, query), stack_samples=stacks))
    (one,) = (one for one in found if one.category == "connection_per_query")
    assert one.is_least == has_threads


def test_the_way_off_the_loop_is_shown_once() -> None:
    cause, stalls = (
        finding("heavy_query", Severity.LOW, 60),
        finding("blocked_loop", Severity.HIGH, 30),
    )
    known = replace(cause, category="full_scan", code="CREATE INDEX ...")
    consequence = Consequence(stalls, is_of_work=True, otherwise="or in a thread")
    assert "or in a thread" in _merge_consequence(known, consequence).evidence
    other = replace(cause, category="full_scan", gain_ns=MS)
    first = _merge_consequence(other, consequence)
    assert first.category == "blocked_loop"
    assert "or in a thread" not in first.evidence


@pytest.mark.parametrize(
    ("plan", "fix"),
    [
        ("SCAN t USING INDEX t_c", "SQLite reads the table in the order"),
        ("SCAN t", "No index on the table's plain"),
    ],
)
def test_an_index_by_whose_order_is_read_may_be_the_wrong_choice(plan: str, fix: str) -> None:
    """On an empty copy the planner has no statistics."""
    scan = aggregate(READ, SITE, ns=300 * MS, count=50)
    scan = scan._replace(rows=50, full_scan_steps=50 * 20_000, vm_steps=50 * 100_000)
    profile = replace(profile_of(scan), plans=(Plan(READ, "/app/t.db", plan),))
    found = find_all(Report(profile), lambda *_: None, {}, ServedBy(""))
    assert [one.fix[: len(fix)] for one in found if one.category == "full_scan"] == [fix]


@pytest.mark.parametrize(
    ("makes_tasks", "severity"), [(True, Severity.LOW), (False, Severity.HIGH)]
)
def test_tasks_that_run_side_by_side_are_no_loop_over_rows(
    makes_tasks: bool, severity: Severity
) -> None:
    """With asyncio.gather(), for example, each task is a request of its own."""
    one = aggregate(READ, SITE, ns=600 * MS, count=100)._replace(rows=100)

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1)

    found = find_all(Report(profile_of(one)), loop, {}, makes_tasks=lambda _: makes_tasks)
    assert [each.severity for each in found if each.category == "n_plus_one"] == [severity]


@pytest.mark.parametrize(
    ("other", "gain_ms", "is_chosen"),
    [
        ("duplicate_query", 100, True),  # for example, the count of Django's paginator
        ("duplicate_query", 74, False),
        ("many_objects", 120, True),
        ("many_objects", 119, False),
    ],
)
def test_what_saves_more_than_a_wider_index(other: str, gain_ms: int, is_chosen: bool) -> None:
    site, name = CallSite(QUERY, (MAIN,)), "missing_covering_index"
    index = Finding(name, Severity.LOW, 0.5, 60 * MS, READ, site, None, (), "Add.", "", doubt="?")
    second = replace(index, category=other, fix="Keep.", gain_ns=gain_ms * MS)
    assert choose_between_findings(index, second).category == (other if is_chosen else name)


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("doubt", ["", "?"])
def test_a_line_that_needs_no_objects_is_told_so(doubt: str, is_reversed: bool) -> None:
    """`if query:` in a loop: prefetching would make the same objects."""
    site = CallSite(QUERY, (MAIN,))
    repeated = Finding("n_plus_one", Severity.HIGH, 0.5, 9 * MS, READ, site, None, (), "Join.", "")
    made = replace(repeated, category="many_objects", fix="Use `.exists()`.", doubt=doubt)
    pair = (made, repeated) if is_reversed else (repeated, made)
    chosen = pair[0] if doubt else made
    assert choose_between_findings(*pair).category == chosen.category
