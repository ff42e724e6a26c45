"""The text of finding cards, on profiles made by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.analysis.units import format_factor, shorten
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import (
    Aggregate,
    Distribution,
    FileWork,
    Frame,
    Plan,
    Profile,
    Repeat,
    Span,
)
from queryprof.report.findings.text import combined_saving, headline, saving_in_words
from queryprof.report.places import Places
from queryprof.report.terminal.report import print_report
from queryprof.report.text.cards import one_line_summary

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)


def findings(profile: Profile) -> tuple[Finding, ...]:
    return find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})


def executed(
    count: int, each_ns: int, longest_ns: int = 0, statement: str = "SELECT a FROM t WHERE b = ?"
) -> Aggregate:
    """Return `count` executions; one takes `longest_ns`, if given."""
    one = aggregate(statement, SITE, ns=count * each_ns, count=count)
    if not longest_ns:
        return one
    total_ns = (count - 1) * each_ns + longest_ns
    return one._replace(
        total_ns=total_ns,
        self_ns=total_ns,
        max_ns=longest_ns,
        execution_max_ns=longest_ns,
        histogram={histogram_bucket(each_ns): count - 1, histogram_bucket(longest_ns): 1},
    )


def planned(statement: str, tree: str) -> Profile:
    """Return executions that read a whole table, with their plan."""
    one = executed(50, MS, statement=statement)._replace(
        vm_steps=50 * 100_000, full_scan_steps=50 * 9_999, rows=50
    )
    return replace(profile_of(one), plans=(Plan(statement, "app.db", tree),))


@pytest.mark.parametrize(
    ("count", "longest_ns", "categories"),
    [
        (20, 11 * MS, ["n_plus_one"]),
        (19, 11 * MS, []),
        (20, 10 * MS, ["n_plus_one"]),
    ],
)
def test_an_outlier_is_no_loop(count: int, longest_ns: int, categories: list[str]) -> None:
    """One of 20 executions takes 10 ms longer than the median, and most of the time."""
    found = findings(profile_of(executed(count, MS // 4, longest_ns)))
    assert [one.category for one in found] == categories


def test_an_outlier_hides_no_loop_and_is_in_no_gain_of_it() -> None:
    """A machine that was busy for a moment causes an outlier. Repeated work comes first."""
    (loop,) = findings(profile_of(executed(1000, 20_000, 300 * MS)))
    assert loop.category == "n_plus_one"
    assert loop.gain_ns == pytest.approx(20 * MS, rel=0.05)


@pytest.mark.parametrize("count", [999, 1000, 20_000])
def test_a_loop_is_one_however_often_it_runs(count: int) -> None:
    """This holds even if very many cheap executions take a tenth of the run or more."""
    (found,) = findings(profile_of(executed(count, 10_000)))
    assert found.category == "n_plus_one"


def test_a_loop_over_a_query_of_everything_is_no_query_for_each_item() -> None:
    assert not findings(profile_of(executed(100, MS, statement="SELECT a FROM t ORDER BY b")))


PLANS = {
    "SELECT id FROM t ORDER BY b LIMIT ?": "temp_btree_sort",
    "SELECT id FROM t WHERE a <> ? ORDER BY b LIMIT ?": "temp_btree_sort",
    "SELECT a FROM t WHERE c = ? GROUP BY a ORDER BY count(*) LIMIT ?": "full_scan",
    "SELECT id FROM t WHERE a <> ? ORDER BY b": "full_scan",
}


@pytest.mark.parametrize("statement", PLANS)
def test_an_order_with_a_limit_wants_an_index_in_that_order(statement: str) -> None:
    """Ordered groups, and queries that return all rows, do not need one."""
    profile = planned(statement, "SCAN t\nUSE TEMP B-TREE FOR ORDER BY")
    (found,) = findings(profile)
    assert found.category == PLANS[statement]
    assert "10,000 rows" in found.evidence[0]


def test_without_a_schema_no_sql_is_shown() -> None:
    (found,) = findings(planned("SELECT a FROM t WHERE b = ? AND c > ?", "SCAN t"))
    assert (found.category, found.code) == ("full_scan", "")


def test_spans_with_several_call_paths_are_one_loop() -> None:
    """There are 50 spans by one path, and one by another."""
    other = (QUERY, Frame("other", "/app/main.py", 20), MAIN)
    counts = {SITE: 2000, other: 40}
    durations = Distribution(51, 510 * MS, 10 * MS, {histogram_bucket(10 * MS): 51})
    queries = Distribution(51, 51 * 40, 40, {histogram_bucket(40): 51})
    span = Span(
        "req",
        51,
        0,
        300 * MS,
        0,
        0,
        durations,
        queries,
        tuple(Repeat("SELECT a", path, count // 40, count, 40) for path, count in counts.items()),
        {},
    )
    profile = replace(
        profile_of(
            *(
                aggregate("SELECT a", path, count=n, ns=n * 10_000, span="req")
                for path, n in counts.items()
            )
        ),
        spans=(span,),
    )
    (found,) = findings(profile)
    assert "40 times per span on average, in 51 spans called req" in found.evidence
    assert saving_in_words(found).endswith(" (4.0% of the spans' time)")


def test_commits_outside_of_requests_are_a_loop() -> None:
    """Half of 100 writes are outside of requests; each request has one."""
    durations = Distribution(50, 300 * MS, 10 * MS, {histogram_bucket(10 * MS): 50})
    span = Span("req", 50, 0, 300 * MS, 0, 0, durations, Distribution(50, 100, 2, {}), (), {})
    beside = replace(span, name="other", count=1000)
    profile = profile_of(
        *(
            one
            for name in ("req", "")
            for one in (
                aggregate("INSERT INTO t VALUES (?)", SITE, ns=10 * MS, count=50, span=name),
                aggregate("COMMIT", SITE, ns=50 * MS, count=50, span=name, operation="commit"),
            )
        )
    )
    found = findings(replace(profile, spans=(span, beside)))
    assert "commit_per_write" in [one.category for one in found]


@pytest.mark.parametrize(("spans", "is_one"), [(50, False), (49, True)])
def test_a_commit_for_each_request_is_as_it_should_be(spans: int, is_one: bool) -> None:
    """There are 100 writes, two in each request."""
    durations = Distribution(spans, 300 * MS, 10 * MS, {histogram_bucket(10 * MS): spans})
    queries = Distribution(spans, 200, 4, {histogram_bucket(4): spans})
    span = Span("req", spans, 0, 300 * MS, 0, 0, durations, queries, (), {})
    profile = profile_of(
        aggregate("INSERT INTO t VALUES (?)", SITE, ns=10 * MS, count=100, span="req"),
        aggregate("COMMIT", SITE, ns=100 * MS, count=100, span="req", operation="commit"),
    )
    beside = replace(span, name="other", count=1000)
    found = findings(replace(profile, spans=(span, beside)))
    assert ("commit_per_write" in [one.category for one in found]) == is_one


def at(line: int) -> tuple[Frame, ...]:
    return (replace(QUERY, line=line), MAIN)


def writes(statement: str, line: int, count: int) -> Aggregate:
    return aggregate(statement, at(line), ns=count * 1000, count=count)


def commits(line: int, count: int) -> Aggregate:
    return aggregate("COMMIT", at(line), ns=2 * count * MS, operation="commit", count=count)


@pytest.mark.parametrize(
    ("second", "most"),
    [
        (100, Severity.HIGH),
        (67, Severity.HIGH),
        (66, Severity.MEDIUM),
        (52, Severity.MEDIUM),
        (20, Severity.LOW),
    ],
)
def test_commits_of_two_statements_of_a_loop_are_one_finding(second: int, most: Severity) -> None:
    """If both statements commit each time, one card covers both. It also covers commits that
    several statements share.
    """
    profile = profile_of(
        writes("INSERT INTO a VALUES (?)", 1, 100),
        commits(2, second),
        writes("INSERT INTO b VALUES (?)", 3, 100),
        commits(4, second),
    )
    (found,) = [one for one in findings(profile) if one.category == "commit_per_write"]
    assert found.gain_ns == pytest.approx(4 * second * MS, rel=0.04)
    assert (found.severity, bool(found.doubt)) == (most, most != Severity.HIGH)


@pytest.mark.parametrize(("syncs", "is_found"), [(80, True), (79, False)])
def test_an_executemany_without_a_transaction_commits_each_row(syncs: int, is_found: bool) -> None:
    many = writes("INSERT INTO a VALUES (?)", 1, 1)._replace(operation="executemany", rows=100)
    work = FileWork(
        many.statement,
        at(1),
        "",
        many.thread,
        "executemany",
        1,
        0,
        0,
        0,
        syncs,
        90 * MS,
        0,
        0,
        0,
        0,
    )
    found = findings(replace(profile_of(many), file_work=(work,)))
    assert [one.category for one in found] == ["commit_per_write"] * is_found
    assert all("executemany() commits each row" in one.fix for one in found)


@pytest.mark.parametrize(
    ("value", "shown"), [(1.234, "x1.23"), (12.34, "x12.3"), (194_123.4, "x194,123")]
)
def test_factors_have_no_exponent(value: float, shown: str) -> None:
    assert format_factor(value) == shown


def test_vm_steps_are_shown_where_they_explain_something() -> None:
    """A statement without findings shows only its rows."""
    quick = aggregate("SELECT a FROM t", ns=90 * MS)._replace(rows=3)
    scan = aggregate("SELECT b FROM t WHERE c = ?", ns=50 * MS)._replace(
        rows=1, vm_steps=90_000, full_scan_steps=30_000
    )
    plan = Plan(scan.statement, ":memory:", "SCAN t\n")
    file = io.StringIO()
    print_report(Report(replace(profile_of(quick, scan), plans=(plan,))), file, width=100)
    cards = file.getvalue().split("\n\n")
    assert [line for card in cards for line in card.splitlines() if "each:" in line] == [
        "     each: rows 3",
        "     each: rows 1  VM steps 90,000  full-scan steps 30,000",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT a", "SELECT a"),
        ("x" * 20, "x" * 20),
        ("x" * 21, "x" * 16 + " ..."),
        ("SELECT aaaa FROM bbbb", "SELECT aaaa FROM ..."),
        ("SELECT aaaaa FROM bbbb", "SELECT aaaaa ..."),
        ("", ""),
    ],
)
def test_a_long_statement_ends_after_a_word(text: str, shown: str) -> None:
    """The limit is 20 characters here."""
    assert shorten(text, 20) == shown


def finding(
    share: float, gain_ns: int, severity: Severity = Severity.HIGH, line: int = 1
) -> Finding:
    site = CallSite(replace(QUERY, line=line), (MAIN,))
    return Finding("full_scan", severity, share, gain_ns, "SELECT", site, None, (), "Index.")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], ""),
        ([finding(0.3, 300)], ""),
        ([finding(0.3, 300), finding(0.1, 100, Severity.LOW)], ""),
        (
            [finding(0.3, 300), finding(0.1, 100, line=2)],
            "These two changes together save up to 400 ns of the run (1.00 µs)",
        ),
        (
            [finding(0.3, 300, line=line) for line in range(4)],
            "These three changes together save up to 900 ns of the run (1.00 µs)",
        ),
        ([finding(0.3, 300), finding(0.1, 100)], ""),  # they are on one line
        (
            [finding(0.6, 600), finding(0.4, 399, line=2)],
            "These two changes together save up to 999 ns of the run (1.00 µs)",
        ),
        ([finding(0.6, 600), finding(0.4, 400, line=2)], ""),  # they save some of the same time
        ([finding(1.0, 9000), finding(1.0, 9000, line=2)], ""),  # the total is unknown
    ],
)
def test_what_the_first_findings_win_together(found: list[Finding], message: str) -> None:
    assert combined_saving(found) == message


def test_the_headline_has_place_cause_and_amount() -> None:
    places = Places(profile_of())
    message = headline(finding(0.3, 300 * MS), places)
    assert message.endswith(": Full table scan, saves up to 300 ms (30.0% of the run)")
    assert message.startswith("query() ")


def test_an_automatic_index_wins_what_building_it_takes() -> None:
    """Building it takes eight VM steps per row of the table."""
    one = aggregate("SELECT a FROM t JOIN u ON b = c", SITE, ns=100 * MS, count=10)
    one = one._replace(rows=10, vm_steps=10 * 40_000, automatic_indexes=10 * 2500)
    plan = Plan(
        one.statement, ":memory:", "SCAN t\nSEARCH u USING AUTOMATIC COVERING INDEX (c=?)\n"
    )
    (found,) = findings(replace(profile_of(one), plans=(plan,)))
    assert (found.category, found.gain_ns) == ("automatic_index", 50 * MS)


@pytest.mark.parametrize(
    ("ns", "message"),
    [(10**9, "(100.0% of 1.00 s)"), (10**9 + 10**7, "(sum over concurrent threads, in 1.00 s)")],
)
def test_threads_have_no_share_of_a_blocks_time(ns: int, message: str) -> None:
    overview = Report(profile_of(aggregate("SELECT 1", ns=ns))).overview
    shown = replace(overview, run_ns=10**9, database_ns=ns, database_share=ns / 10**9)
    assert one_line_summary(shown).endswith(message)


def test_a_blocked_loop_is_freed_and_its_time_is_not_saved() -> None:
    """The statement takes as long in a thread."""
    blocked = replace(finding(0.3, 300 * MS), category="blocked_loop")
    assert saving_in_words(blocked) == "frees the event loop for up to 300 ms (30.0% of the run)"
    assert combined_saving([blocked, finding(0.3, 300 * MS, line=2)]) == ""
