"""A background thread's queries count only as far as the run can become shorter without them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of
from findings.test_handed_gains import handed

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.side_by_side import IN_BACKGROUND
from queryprof.model import Frame, Profile, StackSample, Thread, ThreadUsage

pytestmark = pytest.mark.once

MS = 1_000_000
INSERT, COMMIT = "INSERT INTO log VALUES (?)", "COMMIT"
LOOP = Frame("write", "/app/main.py", 9)
MAIN_THREAD, WRITER = Thread(1, "MainThread"), Thread(1, "Writer")


def usage(thread: Thread, ms: int) -> ThreadUsage:
    return ThreadUsage(thread, ms * MS, 0, 1, 1, None, None, None, None, 1000 * MS, ())


def commits(thread: Thread, main_ms: int, span: str = "") -> Profile:
    """A run of one second. A thread commits 100 writes in 600 ms, and the main thread computes."""
    members = (
        aggregate(INSERT, ns=10 * MS, count=100, span=span)._replace(rows=100),
        aggregate(COMMIT, ns=600 * MS, count=100, operation="commit", span=span),
    )
    return replace(
        profile_of(*(one._replace(thread=thread) for one in members)),
        thread_usage=(usage(MAIN_THREAD, main_ms), usage(WRITER, 100)),
    )


def first(profile: Profile) -> Finding:
    return find_all(Report(profile), lambda frame, _: LOOP if frame == MAIN else None, {})[0]


@pytest.mark.parametrize(
    ("main_ms", "gain_ms", "severity"),
    [
        (0, 594, Severity.HIGH),  # unknown
        (199, 594, Severity.HIGH),  # it mostly waits
        (200, 594, Severity.MEDIUM),
        (407, 593, Severity.MEDIUM),
        (801, 199, Severity.LOW),
        (1000, 594, Severity.HIGH),  # not the time of one thread
    ],
)
def test_the_main_threads_own_work_remains(main_ms: int, gain_ms: int, severity: Severity) -> None:
    found = first(commits(WRITER, main_ms))
    assert (found.category, found.gain_ns) == ("commit_per_write", gain_ms * MS)
    assert found.severity is severity
    assert (found.doubt == IN_BACKGROUND) == (severity is not Severity.HIGH)


def test_the_main_threads_own_queries_are_the_run() -> None:
    assert first(commits(MAIN_THREAD, 900)).gain_ns == 594 * MS


def test_a_call_waits_for_the_thread_that_it_is_handed_to() -> None:
    profile = replace(commits(WRITER, 900), handoffs=(handed((MAIN,), 100, 5000),))
    assert first(profile).severity is Severity.HIGH


def test_a_request_waits_for_its_thread() -> None:
    assert first(commits(WRITER, 900, "GET /")).severity is Severity.HIGH


def test_the_program_awaits_the_calls_of_aiosqlite() -> None:
    """Each connection has a thread of its own, whose first call no loop hands over."""
    frame = Frame("connect", "/venv/site-packages/aiosqlite/core.py", 1, "library")
    one = commits(WRITER, 407)
    stacks = tuple(
        StackSample(each.statement, (frame, *each.path), 64, each.self_ns)
        for each in one.aggregates
    )
    found = first(replace(one, stack_samples=stacks))
    assert (found.doubt, found.severity) == ("", Severity.HIGH)
