"""Code of the program that blocks an event loop, without a slow statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate
from findings.test_named_statements import SITE
from report.test_loop_reports import MS, SEARCH, loop, profile_of, stall

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.model import Cause
from queryprof.report.text.cards import findings_at

pytestmark = pytest.mark.once

BUSY_NS, IDLE_NS = 110 * MS, 0


def found(**changes: object) -> list[Finding]:
    one = stall(**{"database_ns": 0, "causes": ()} | changes)
    report = Report(profile_of(loop(stalls=(one,), functions=())))
    return list(find_all(report, lambda _frame, _group: None, {}))


def test_a_task_that_sleeps_without_await_is_a_fault() -> None:
    (one,) = found(cpu_ns=IDLE_NS, count=1, total_ns=20_000 * MS, gil_ns=0)
    assert (one.category, one.severity.value, one.doubt) == ("blocked_loop", "high", "")
    assert one.site.frame is not None
    assert one.fix.startswith("It waits and does not compute: await what it waits for")


@pytest.mark.parametrize(
    ("count", "delayed", "is_said"), [(2, 1, True), (1, 1, False), (2, 0, False)]
)
def test_a_computation_is_a_fault_if_it_delays_others_again(
    count: int, delayed: int, is_said: bool
) -> None:
    some = found(cpu_ns=BUSY_NS, count=count, delayed=delayed, gil_ns=0)
    assert [(one.category, one.severity.value) for one in some] == [
        ("blocked_loop", "medium")
    ] * is_said
    assert all("does not know whether other tasks need the loop" in one.doubt for one in some)


def test_a_stall_without_a_known_function_place_names_its_function() -> None:
    (one,) = found(cpu_ns=IDLE_NS, gil_ns=0, path=(), stack=())
    assert one.site.frame == SEARCH


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
