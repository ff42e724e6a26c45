"""Each threshold of a finding, from both sides, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity, severity_of_gain
from queryprof.findings.merging import is_part_of_code
from queryprof.model import (
    Frame,
    ParameterSample,
    Plan,
    Profile,
    StackSample,
)

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a FROM t WHERE b = ?"


def findings(profile: Profile, is_loop: bool = True) -> tuple[Finding, ...]:
    """Return the findings of a program that runs for one second."""

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if is_loop else None

    return find_all(Report(profile), loop, {})


def has(category: str, profile: Profile, is_loop: bool = True) -> bool:
    return category in {one.category for one in findings(profile, is_loop)}


SEVERITIES = [
    (0.1, 0, Severity.HIGH),
    (0.0999, 0, Severity.MEDIUM),
    (0.02, 0, Severity.MEDIUM),
    (0.0199, 0, Severity.LOW),
    (0.0, 100 * MS, Severity.HIGH),
    (0.0, 100 * MS - 1, Severity.LOW),
]


DOUBTFUL = [
    (0.5, 0, Severity.HIGH),
    (0.4999, 0, Severity.MEDIUM),
    (0.2, 0, Severity.MEDIUM),
    (0.1999, 0, Severity.LOW),
    (0.0, 100 * MS, Severity.MEDIUM),
    (0.0, 100 * MS - 1, Severity.LOW),
]


@pytest.mark.parametrize(("share", "span_ns", "severity"), DOUBTFUL)
def test_what_is_in_doubt_is_less_severe(share: float, span_ns: float, severity: Severity) -> None:
    assert severity_of_gain(share, span_ns, is_sure=False) is severity


@pytest.mark.parametrize(
    ("gain_ns", "span_ns", "severity"),
    [
        (100 * MS - 1, 0, Severity.LOW),
        (100 * MS, 0, Severity.HIGH),
        (100 * MS - 1, 1, Severity.HIGH),
    ],
)
def test_what_wins_little_time_of_a_run_is_low(
    gain_ns: float, span_ns: float, severity: Severity
) -> None:
    assert severity_of_gain(0.5, span_ns, gain_ns=gain_ns) is severity


@pytest.mark.parametrize(("share", "span_ns", "severity"), SEVERITIES)
def test_severity(share: float, span_ns: float, severity: Severity) -> None:
    assert severity_of_gain(share, span_ns) is severity


@pytest.mark.parametrize(("errors", "is_complete"), [(3, True), (2, False)])
def test_a_call_that_failed_may_have_passed_no_statement(errors: int, is_complete: bool) -> None:
    """The statement of three calls is unknown, and some of the calls failed."""
    unknown = aggregate("(unknown)", SITE, count=3)._replace(errors=errors)
    cautions = Report(profile_of(unknown)).overview.cautions
    assert (not any("the statement of" in one for one in cautions)) == is_complete


@pytest.mark.parametrize(("ns", "is_reported"), [(200 * MS, True), (199 * MS, False)])
def test_a_query_that_takes_much_of_the_run_is_reported(ns: int, is_reported: bool) -> None:
    """No other rule fits the query. It gets the lowest severity."""
    found = findings(profile_of(aggregate(READ, SITE, ns=ns, count=3)), is_loop=False)
    assert [(one.category, one.severity) for one in found] == (
        [("heavy_query", Severity.LOW)] if is_reported else []
    )


@pytest.mark.parametrize(("ns", "is_reported"), [(5 * MS, True), (900_000, False)])
def test_what_wins_little_is_no_finding(ns: int, is_reported: bool) -> None:
    """The limits are half a percent of the run and a millisecond."""
    assert bool(findings(profile_of(aggregate(READ, SITE, ns=ns, count=100)))) == is_reported


@pytest.mark.parametrize(("count", "is_loop"), [(20, True), (19, False)])
def test_a_loop_runs_twenty_times(count: int, is_loop: bool) -> None:
    assert has("n_plus_one", profile_of(aggregate(READ, SITE, ns=50 * MS, count=count))) == is_loop


@pytest.mark.parametrize(("rows", "is_one"), [(20, True), (21, False)])
def test_a_query_for_many_items_is_not_for_one(rows: int, is_one: bool) -> None:
    """Only the source shows a loop."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)._replace(rows=50 * rows, vm_steps=0)
    assert has("n_plus_one", profile_of(one)) == is_one


@pytest.mark.parametrize(
    ("steps", "rows", "is_one"),
    [(999, 1, True), (1000, 1, False), (1139, 18, True), (1140, 18, False)],
)
def test_an_execution_that_works_hard_is_no_loop_s_fault(
    steps: int, rows: int, is_one: bool
) -> None:
    """It works hard with 1,000 VM steps or more, and 60 for each row plus one."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)
    one = one._replace(rows=50 * rows, vm_steps=50 * steps)
    assert has("n_plus_one", profile_of(one)) == is_one


@pytest.mark.parametrize(("behind", "is_parent"), [(0, True), (1, False)])
def test_a_query_behind_a_loop_is_no_parent(behind: int, is_parent: bool) -> None:
    """This holds however many rows it returns."""
    line = replace(QUERY, line=QUERY.line + behind)
    parent = aggregate("SELECT id FROM p", (line, MAIN), ns=MS, count=1)._replace(rows=100)
    child = aggregate(READ, SITE, ns=50 * MS, count=100)

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if frame == QUERY else None

    found = find_all(Report(profile_of(parent, child)), loop, {})
    (one,) = [one for one in found if one.category == "n_plus_one"]
    assert bool(one.parent) == is_parent


@pytest.mark.parametrize(
    ("rows", "is_parent"), [(90, True), (89, False), (110, True), (111, False)]
)
def test_a_parent_has_as_many_rows_as_there_are_executions(rows: int, is_parent: bool) -> None:
    """The numbers may differ by a tenth."""
    parent = aggregate("SELECT id FROM p", (QUERY, MAIN), ns=MS, count=1)._replace(rows=rows)
    child = aggregate(READ, SITE, ns=50 * MS, count=100)
    (found,) = [
        one
        for one in findings(profile_of(parent, child))
        if one.category == "n_plus_one" and one.statement == READ
    ]
    assert bool(found.parent) == is_parent
    assert bool(found.doubt) != is_parent


@pytest.mark.parametrize(
    ("samples", "repeats", "is_one"),
    [(4, 2, True), (4, 1, False), (3, 3, False), (100, 50, True), (100, 49, False)],
)
def test_half_of_the_samples_are_repeats(samples: int, repeats: int, is_one: bool) -> None:
    """At least four samples are needed."""
    profile = profile_of(aggregate(READ, SITE, ns=50 * MS, count=100))
    profile = replace(profile, parameters=(ParameterSample(READ, SITE, samples, repeats),))
    assert has("duplicate_query", profile) == is_one


@pytest.mark.parametrize(("samples", "severity"), [(12, Severity.HIGH), (11, Severity.MEDIUM)])
def test_few_samples_are_in_doubt(samples: int, severity: Severity) -> None:
    profile = profile_of(aggregate(READ, SITE, ns=500 * MS, count=100))
    profile = replace(profile, parameters=(ParameterSample(READ, SITE, samples, samples),))
    (found,) = (one for one in findings(profile, True) if one.category == "duplicate_query")
    assert (found.severity, bool(found.doubt)) == (severity, severity is Severity.MEDIUM)


@pytest.mark.parametrize(
    ("opened", "statements", "is_one"), [(20, 40, True), (20, 41, False), (19, 19, False)]
)
def test_a_connection_serves_two_statements(opened: int, statements: int, is_one: bool) -> None:
    """At least twenty connections are needed."""
    connecting = aggregate("(connect)", SITE, ns=50 * MS, count=opened)._replace(
        operation="connect"
    )
    executed = aggregate(READ, SITE, ns=MS, count=statements)
    assert has("connection_per_query", profile_of(connecting, executed)) == is_one


@pytest.mark.parametrize(("statements", "severity"), [(20, Severity.HIGH), (21, Severity.MEDIUM)])
def test_a_connection_for_several_statements_may_be_a_request_s(
    statements: int, severity: Severity
) -> None:
    connecting = aggregate("(connect)", SITE, ns=500 * MS, count=20)._replace(operation="connect")
    executed = aggregate(READ, SITE, ns=MS, count=statements)
    (found,) = (
        one
        for one in findings(profile_of(connecting, executed), True)
        if one.category == "connection_per_query"
    )
    assert (found.severity, bool(found.doubt)) == (severity, severity is Severity.MEDIUM)


@pytest.mark.parametrize(("created", "is_setup"), [(10, True), (9, False)])
def test_what_each_connection_sets_up_is_not_what_it_is_for(created: int, is_setup: bool) -> None:
    """The statement runs on every other connection to set it up, and its time is saved too."""
    connecting = aggregate("(connect)", SITE, ns=50 * MS, count=20)._replace(operation="connect")
    create = aggregate("CREATE TABLE IF NOT EXISTS t (a)", SITE, ns=400 * MS, count=created)
    executed = aggregate(READ, SITE, ns=MS, count=20)
    (found,) = (
        one
        for one in findings(profile_of(connecting, create, executed), True)
        if one.category == "connection_per_query"
    )
    assert f"20 {'other ' * is_setup}statements" in found.evidence[0]
    assert ("runs CREATE again" in found.evidence[0]) == is_setup
    assert (found.gain_ns >= 450 * MS) == is_setup


@pytest.mark.parametrize(
    ("runs", "texts", "is_one"),
    [(100, 50, True), (101, 50, False), (60, 49, False), (9000, 129, True), (9000, 128, False)],
)
def test_half_of_the_texts_differ(runs: int, texts: int, is_one: bool) -> None:
    """At least fifty texts are needed, or more than the 128 that a connection caches, in turns."""
    profile = replace(
        profile_of(aggregate(READ, SITE, ns=80 * MS, count=runs)), texts={READ: texts}
    )
    assert has("re_prepare", profile, is_loop=False) == is_one


@pytest.mark.parametrize(
    ("runs", "ns", "is_one"),
    [
        (1000, 200 * MS, True),
        (999, 200 * MS, False),
        (1000, 99 * MS, False),
        (1000, 300 * MS, False),
    ],
)
def test_many_cheap_ones_take_a_tenth(runs: int, ns: int, is_one: bool) -> None:
    """There are a thousand of them, each below 300 us."""
    assert has("many_cheap", profile_of(aggregate(READ, SITE, ns=ns, count=runs)), False) == is_one


@pytest.mark.parametrize(("steps", "is_one"), [(1000, True), (1001, False)])
def test_a_cheap_one_takes_few_steps(steps: int, is_one: bool) -> None:
    """If most of a query's time is its own work, one query for many items saves little."""
    each = aggregate(READ, SITE, ns=200 * MS, count=1000)._replace(vm_steps=1000 * steps)
    assert has("many_cheap", profile_of(each), is_loop=False) == is_one


@pytest.mark.parametrize(("steps", "is_reported"), [(9, False), (10, True)])
def test_a_scan_counts_from_a_thousand_rows_on(steps: int, is_reported: bool) -> None:
    """The plan must scan, and the counters must show how much. test_marks has the figures."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 1000 * steps, full_scan_steps=50 * 100 * steps
    )
    profile = replace(profile_of(one), plans=(Plan(READ, "app.db", "SCAN t"),))
    assert has("full_scan", profile) == is_reported


@pytest.mark.parametrize(
    ("code", "of", "is_one"),
    [
        ("CREATE INDEX a ON t (b);", "CREATE INDEX a_c ON t (b, c);", True),
        ("CREATE INDEX a ON t (b);", "CREATE INDEX a ON t (b); CREATE INDEX d ON t (d);", True),
        ("CREATE INDEX a ON t (b);", "CREATE INDEX a_c ON t (bc, c);", False),
        ("CREATE INDEX a ON t (b);", "CREATE INDEX a_c ON t (c, b);", False),
        ("CREATE INDEX a ON t (b);", "CREATE INDEX a_c ON u (b, c);", False),
    ],
)
def test_an_index_that_begins_another_is_not_made_beside_it(
    code: str, of: str, is_one: bool
) -> None:
    assert is_part_of_code(code, of) == is_one


@pytest.mark.parametrize(
    ("runs", "rows", "is_loop", "is_one"),
    [
        (20, 20, True, True),
        (19, 19, True, False),
        (20, 20, False, False),
        (20, 40, True, True),
        (20, 41, True, False),
    ],
)
def test_a_loop_changes_rows_one_by_one(runs: int, rows: int, is_loop: bool, is_one: bool) -> None:
    """It needs twenty executions, with at most two rows each."""
    one = aggregate("UPDATE t SET a = ? WHERE b = ?", SITE, ns=50 * MS, count=runs)
    assert has("single_changes", profile_of(one._replace(rows=rows)), is_loop) == is_one


@pytest.mark.parametrize(
    ("library", "severity"), [("django", Severity.MEDIUM), ("peewee", Severity.HIGH)]
)
def test_new_values_that_python_computes(library: str, severity: Severity) -> None:
    """Django's bulk_update() saves little on SQLite. The loop takes 600 ms of one second."""
    one = aggregate("UPDATE t SET a = ? WHERE b = ?", SITE, ns=600 * MS, count=100)
    called = Frame("save", f"/venv/site-packages/{library}/x.py", 1, "library")
    stacks = (StackSample(one.statement, (called, *SITE), 64, one.self_ns),)
    profile = replace(profile_of(one._replace(rows=100)), stack_samples=stacks)
    (found,) = findings(profile)
    assert (found.category, found.severity) == ("single_changes", severity)
    assert ("bulk_update()" in found.doubt) == (library == "django")


@pytest.mark.parametrize(("excess_ms", "gain_ms"), [(26, 74), (25, 100)])
def test_one_long_execution_is_in_no_gain(excess_ms: int, gain_ms: int) -> None:
    """It takes more than a quarter of 100 ms; the others take 0.75 ms each."""
    one = aggregate(READ, SITE, ns=100 * MS, count=100)
    bucket = {histogram_bucket(700_000): 99, histogram_bucket(excess_ms * MS): 1}
    longest = one._replace(histogram=bucket, execution_max_ns=excess_ms * MS + 700_000)
    (found,) = [each for each in findings(profile_of(longest)) if each.category == "n_plus_one"]
    assert found.gain_ns == pytest.approx(0.99 * gain_ms * MS, rel=0.02)
