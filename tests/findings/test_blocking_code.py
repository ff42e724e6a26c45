"""Code of the program that blocks an event loop, without a slow statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate
from findings.test_named_statements import SITE
from report.test_loop_reports import MS, NOTHING, SEARCH, loop, profile_of, stall

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.findings.blocking_code import blocking_in_words, merge_with_causes
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.heavy import BLOCKED
from queryprof.model import OTHER_LINE, Cause, Frame
from queryprof.model.loops import Distribution, Step
from queryprof.report.text.cards import findings_at

pytestmark = pytest.mark.once

BUSY_NS, IDLE_NS = 110 * MS, 0


def found(**changes: object) -> list[Finding]:
    one = stall(**{"database_ns": 0, "causes": ()} | changes)
    report = Report(profile_of(loop(stalls=(one,), functions=())))
    return list(find_all(report, lambda _frame, _group: None, {}))


@pytest.mark.parametrize(("count", "severity"), [(2, "high"), (1, "medium")])
def test_a_task_that_sleeps_without_await_is_a_fault(count: int, severity: str) -> None:
    """A single wait may be part of the start."""
    (one,) = found(cpu_ns=IDLE_NS, count=count, total_ns=40_000 * MS, gil_ns=0)
    assert (one.category, one.severity.value) == ("blocked_loop", severity)
    assert (one.doubt == "") == (count == 2)
    assert one.fix.startswith(
        "The code waits: await the slow call, or run it with asyncio.to_thread()."
    )


@pytest.mark.parametrize(
    ("count", "delayed", "severities"),
    [(2, 4, ["medium"]), (2, 3, ["low"]), (1, 4, []), (2, 0, [])],
)
def test_a_computation_is_a_fault_if_it_delays_others_again(
    count: int, delayed: int, severities: list[str]
) -> None:
    """A timer that shows the progress is one callback for each computation."""
    some = found(cpu_ns=BUSY_NS, count=count, delayed=delayed, gil_ns=0, total_ns=40_000 * MS)
    assert [one.severity.value for one in some] == severities
    assert all("does not know whether other tasks needed the loop" in one.doubt for one in some)


def test_a_line_that_queries_and_blocks_is_one_finding() -> None:
    """An object mapper computes in the line of an N+1: the blocking is its evidence."""
    site = CallSite(SEARCH)
    query = Finding("n_plus_one", Severity.HIGH, 0.5, 50, "a", site, None, ("many",), "Join them.")
    block = Finding("blocked_loop", Severity.LOW, 1.0, 100, "", site, None, ("long",), "Await it.")
    (one,) = merge_with_causes([query], [block])
    assert (one.category, one.evidence) == ("n_plus_one", ("many", "long"))
    assert len(list(merge_with_causes([replace(query, gain_ns=49)], [block]))) == 2


def test_a_stall_without_a_known_line_names_its_function() -> None:
    (one,) = found(cpu_ns=IDLE_NS, gil_ns=0, path=(), stack=())
    assert one.site.frame == SEARCH


@pytest.mark.parametrize("frame", [NOTHING, OTHER_LINE])
def test_a_stall_of_unknown_code_is_no_finding(frame: Frame) -> None:
    assert not found(cpu_ns=IDLE_NS, gil_ns=0, path=(), stack=(), function=frame)


@pytest.mark.parametrize("is_database", [True, False])
def test_a_statement_is_blamed_only_for_stalls_that_it_makes(is_database: bool) -> None:
    """A task executes a fast query and then sleeps: the query does not block the loop."""
    read = aggregate("SELECT a FROM t", SITE, ns=10 * MS, count=10)
    cause = Cause(read.statement, SITE, 10, 10 * MS)
    one = stall(database_ns=(10**12 if is_database else 10 * MS), causes=(cause,), path=SITE)
    profile = profile_of(loop(stalls=(one,), functions=()))
    report = Report(replace(profile, aggregates=(read,)))
    (bottleneck,) = report.ranking.bottlenecks
    lines = list(findings_at(bottleneck, report, ()))
    assert bool(lines) == is_database


@pytest.mark.parametrize(("share", "is_named"), [(0.2, True), (0.19, False)])
def test_another_statement_of_the_same_stalls_is_named(share: float, is_named: bool) -> None:
    one = stall(database_ns=10**12, total_ns=1000 * MS, path=SITE)
    write, commit = (
        Cause("INSERT INTO t VALUES (?)", SITE, 10, round((1 - share) * 1000 * MS)),
        Cause("COMMIT", SITE, 10, round(share * 1000 * MS)),
    )
    report = Report(profile_of(loop(stalls=(replace(one, causes=(write, commit)),), functions=())))
    (summary,) = report.loops[0].stalls
    assert blocking_in_words("asyncio", summary).endswith("together with COMMIT") == is_named


@pytest.mark.parametrize("has_stalls", [True, False])
def test_a_blocked_loop_is_described_once(has_stalls: bool) -> None:
    """Its stalls, or, without them, the time of its executions."""
    read = aggregate("SELECT a FROM t WHERE b = ?", SITE, ns=900 * MS, count=3)
    cause = Cause(read.statement, SITE, 3, 900 * MS)
    blocked = stall(
        count=3,
        total_ns=900 * MS,
        max_ns=300 * MS,
        database_ns=900 * MS,
        causes=(cause,),
        path=SITE,
    )
    step = Step(SEARCH, Distribution(3, 900 * MS, 300 * MS), 900 * MS, 0, (cause,))
    profile = profile_of(loop(stalls=(blocked,) * has_stalls, functions=(step,)))
    all_found = find_all(Report(replace(profile, aggregates=(read,))), lambda *_: None, {})
    (one,) = (each for each in all_found if each.category == "blocked_loop")
    assert [BLOCKED in each for each in one.evidence].count(True) == (not has_stalls)
    assert any("it blocked the asyncio loop 3 times" in each for each in one.evidence) == has_stalls
