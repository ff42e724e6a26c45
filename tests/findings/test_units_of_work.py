"""Repeated queries of a function that has a transaction per call: requests without spans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.paging import PAGES_OF_REQUESTS
from queryprof.findings.units_of_work import IN_A_READER, IN_A_REQUEST
from queryprof.model import Aggregate, Frame, ParameterSample

pytestmark = pytest.mark.once

MS = 1_000_000
HANDLER = Frame("handle", "/app/app.py", 10)
READS = [f"SELECT a FROM t{number} WHERE b = ?" for number in range(3)]


def found(
    reads: int, ends: int, loop: Frame, repeats: int = 0, each_ms: int = 150
) -> list[Finding]:
    """Return the findings of a function that executes some queries 100 times."""
    path = (HANDLER, MAIN)
    queries = [aggregate(text, path, ns=each_ms * MS, count=100) for text in READS[:reads]]
    end = aggregate("ROLLBACK", path, ns=MS, operation="rollback", count=ends)
    samples = tuple(ParameterSample(text, path, 20, repeats) for text in READS[:reads])
    one = replace(profile_of(*queries, end), parameters=samples)
    return [*find_all(Report(one), lambda *_: loop, {})]


@pytest.mark.parametrize(
    ("reads", "ends", "loop", "is_request"),
    [
        (3, 100, replace(MAIN, line=5), True),
        (3, 90, replace(MAIN, line=5), True),
        (3, 89, replace(MAIN, line=5), False),
        (2, 100, replace(MAIN, line=5), False),
        (3, 100, replace(HANDLER, line=9), False),  # a loop in the request
    ],
)
@pytest.mark.parametrize(("repeats", "category"), [(0, "n_plus_one"), (20, "duplicate_query")])
def test_queries_of_a_request_are_no_loop(
    reads: int, ends: int, loop: Frame, is_request: bool, repeats: int, category: str
) -> None:
    of_queries = [one for one in found(reads, ends, loop, repeats) if one.category == category]
    assert of_queries
    assert all((one.severity is Severity.LOW) == is_request for one in of_queries)
    assert all((one.doubt == IN_A_REQUEST) == is_request for one in of_queries)


@pytest.mark.parametrize(("each_ms", "is_doubted"), [(199, True), (200, False)])
def test_a_repeated_query_that_takes_much_of_the_run(each_ms: int, is_doubted: bool) -> None:
    """A batch may also have a transaction for each item: its constant query is worth keeping."""
    some = found(3, 100, replace(MAIN, line=5), repeats=20, each_ms=each_ms)
    repeated = [one for one in some if one.category == "duplicate_query"]
    assert repeated
    assert all((one.doubt == IN_A_REQUEST) == is_doubted for one in repeated)


UPDATE = aggregate("UPDATE t3 SET c = 1", (HANDLER, MAIN), count=100)
IN_LOOP = aggregate("SELECT d FROM t4", (MAIN,), count=1)


@pytest.mark.parametrize(
    ("reads", "others", "each_ms", "is_doubted"),
    [
        (3, (), 199, True),
        (2, (), 150, False),
        (3, (UPDATE,), 150, False),  # not only reads
        (3, (IN_LOOP,), 150, False),  # the loop may go over the rows of a query
        (3, (), 200, True),  # the parameters of requests repeat
    ],
)
def test_a_repeated_query_of_a_function_that_only_reads(
    reads: int, others: tuple[Aggregate, ...], each_ms: int, is_doubted: bool
) -> None:
    some = [aggregate(one, (HANDLER, MAIN), ns=each_ms * MS, count=100) for one in READS]
    samples = (ParameterSample(READS[0], (HANDLER, MAIN), 20, 20),)
    one = replace(profile_of(*some[:reads], *others), parameters=samples)
    findings = find_all(Report(one), lambda *_: replace(MAIN, line=5), {})
    (repeated,) = (one for one in findings if one.category == "duplicate_query")
    assert (repeated.severity is Severity.LOW) == is_doubted
    assert (repeated.doubt == IN_A_READER) == is_doubted


@pytest.mark.parametrize(("each_ms", "is_doubted"), [(199, True), (200, False)])
def test_a_constant_query_of_a_function_that_only_reads(each_ms: int, is_doubted: bool) -> None:
    """If it takes a fifth of the run, it is worth keeping its result, also for requests."""
    constant, *others = ("SELECT g FROM t7", *READS[:2])
    slow = aggregate(constant, (HANDLER, MAIN), ns=each_ms * MS, count=100)
    rest = [aggregate(one, (HANDLER, MAIN), ns=MS, count=100) for one in others]
    samples = (ParameterSample(constant, (HANDLER, MAIN), 20, 20),)
    one = replace(profile_of(slow, *rest), parameters=samples)
    findings = find_all(Report(one), lambda *_: replace(MAIN, line=5), {})
    (repeated,) = (one for one in findings if one.category == "duplicate_query")
    assert (repeated.severity is Severity.LOW) == is_doubted


@pytest.mark.parametrize(("reads", "is_doubted"), [(3, True), (2, False)])
def test_pages_of_requests(reads: int, is_doubted: bool) -> None:
    sql = "SELECT f FROM t6 ORDER BY id LIMIT 25 OFFSET ?"
    page = aggregate(sql, (HANDLER, MAIN), ns=900 * MS, count=100)
    page = page._replace(rows=2500, vm_steps=1_000_000)
    some = [aggregate(one, (HANDLER, MAIN), ns=MS, count=100) for one in READS[: reads - 1]]
    one = replace(
        profile_of(page, *some),
        parameters=(ParameterSample(sql, (HANDLER, MAIN), 20, 0, offsets=20, skipped=20_000),),
    )
    findings = find_all(Report(one), lambda *_: replace(MAIN, line=5), {})
    (paging,) = (one for one in findings if one.category == "offset_pagination")
    assert (paging.severity is Severity.LOW) == is_doubted
    assert (paging.doubt == PAGES_OF_REQUESTS) == is_doubted
