"""Shares of findings, and reports of statements that a library executes for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, process, profile_of
from findings.test_causes import Knows

from queryprof.analysis.overview import completeness_sentence
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Severity
from queryprof.findings.whole import PROGRAM_BUSY_TIME, SERVER_BUSY_TIME, reference_time
from queryprof.model import FileWork, Frame, Plan, Profile, StackSample, Thread, ThreadUsage
from queryprof.operations import OWN_NOTE
from queryprof.planner.facts import IndexHelp
from queryprof.report.findings.text import server_hint

pytestmark = pytest.mark.once

MS = 1_000_000
SECOND = 1000 * MS
READ = "SELECT a FROM t WHERE b = ?"
VIEW = Frame("orders", "/app/views.py", 9)
HANDLER = Frame("get_response", "/venv/site-packages/django/core/handlers/base.py", 1, "library")
QUOTES = Frame(
    "DatabaseOperations._quote_params_for_last_executed_query",
    "/venv/site-packages/django/db/backends/sqlite3/operations.py",
    1,
    "library",
)


def usage(thread: Thread, ms: int) -> ThreadUsage:
    half = ms * MS // 2
    return ThreadUsage(thread, half, half, 21, 10, None, None, None, None, SECOND, ())


def server(*cpu_ms: int, stack: tuple[Frame, ...] = (VIEW, HANDLER)) -> Profile:
    """Return threads of one second each, which use the database for 200 ms each."""
    threads = [Thread(1, f"T{number}") for number in range(len(cpu_ms))]
    one = aggregate(READ, (MAIN,), ns=200 * MS, count=100)
    return replace(
        profile_of(*(one._replace(thread=thread) for thread in threads)),
        thread_usage=tuple(usage(thread, ms) for thread, ms in zip(threads, cpu_ms, strict=True)),
        stack_samples=(StackSample(READ, stack, 1, 1),),
    )


def kept_waiting(profile: Profile) -> Profile:
    """Return the same on a busy machine."""
    (one,) = profile.thread_usage
    return replace(profile, thread_usage=(replace(one, voluntary_switches=20),))


def with_syncs(profile: Profile, syncs: int) -> Profile:
    """The same with syncs of files, during which the thread yields the CPU."""
    work = FileWork(READ, (MAIN,), "", Thread(1, "T0"), "execute", *([0] * 10))
    return replace(profile, file_work=(replace(work, syncs=syncs),))


@pytest.mark.parametrize(
    ("profile", "whole"),
    [
        (with_syncs(server(300, stack=(VIEW,)), 0), (300 * MS, PROGRAM_BUSY_TIME)),
        (with_syncs(server(300, stack=(VIEW,)), 1), (SECOND, "run")),  # it waited for the disk
        (server(300), (300 * MS, SERVER_BUSY_TIME)),
        (server(100), (200 * MS, SERVER_BUSY_TIME)),
        (server(300, 100), (500 * MS, SERVER_BUSY_TIME)),
        (server(1000), (SECOND, "run")),
        (server(300, stack=(VIEW,)), (300 * MS, PROGRAM_BUSY_TIME)),
        (server(499, stack=(VIEW,)), (499 * MS, PROGRAM_BUSY_TIME)),
        (server(500, stack=(VIEW,)), (SECOND, "run")),
        (kept_waiting(server(300, stack=(VIEW,))), (SECOND, "run")),
        (server(300, stack=(VIEW, HANDLER, MAIN)), (300 * MS, PROGRAM_BUSY_TIME)),
        (replace(server(300), thread_usage=()), (SECOND, "run")),
    ],
    ids=[
        "no syncs",
        "syncs",
        "waits",
        "waits in the database",
        "two threads",
        "is busy",
        "no server, and waits",
        "still waits most of the time",
        "waits half of the time",
        "waits for a processor",
        "a test's client",
        "not known",
    ],
)
def test_a_server_s_shares_are_of_the_time_that_it_was_busy(
    profile: Profile, whole: tuple[int, str]
) -> None:
    """The server waits for requests, unless spans mark them."""
    assert reference_time(profile, 0) == whole
    assert reference_time(profile, 50 * MS)[0] == 50 * MS
    found = find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})
    assert {one.whole for one in found} <= {whole[1]}
    assert ("WsgiMiddleware" in server_hint(found)) == (
        whole[1] == SERVER_BUSY_TIME
    )  # those with findings


@pytest.mark.parametrize(("cpu_ms", "is_low"), [(499, True), (500, False)])
def test_items_that_arrive_one_by_one_are_no_certain_loop(cpu_ms: int, is_low: bool) -> None:
    """The program waits for more than half of the run, perhaps for messages."""
    found = find_all(
        Report(server(cpu_ms, stack=(VIEW,))), lambda frame, _: replace(frame, line=1), {}
    )
    (message,) = [one for one in found if one.category == "n_plus_one"]
    assert ("arrive one by one" in message.doubt) == is_low
    assert message.severity is Severity.LOW or not is_low


def test_processes_without_queries_are_not_counted() -> None:
    several = replace(server(1000), processes=(process(1), process(2), process(3)))
    other = aggregate(READ, (MAIN,), ns=MS)._replace(thread=Thread(2, "T"))
    both = replace(several, aggregates=(*several.aggregates, other), stack_samples=())
    assert reference_time(several, 0) == (SECOND, "run")
    assert reference_time(both, 0) == (SECOND, "run")


@pytest.mark.parametrize("is_sampled", [True, False])
def test_what_a_library_executes_for_itself_is_no_loop(is_sampled: bool) -> None:
    """A trace may have only the note of the statement, and no sample of its stack."""
    one = aggregate("SELECT QUOTE(?)", (MAIN,), ns=300 * MS, count=100)
    sample = StackSample("SELECT QUOTE(?)", (QUOTES, MAIN), 1, 1)
    whole = profile_of(one)
    report = Report(
        replace(whole, stack_samples=(sample,))
        if is_sampled
        else replace(whole, notes={"SELECT QUOTE(?)": OWN_NOTE})
    )
    assert report.notes == {"SELECT QUOTE(?)": OWN_NOTE}
    assert report.own_statements == {"SELECT QUOTE(?)"}
    assert find_all(report, lambda frame, _: replace(frame, line=1), {}) == ()


@pytest.mark.parametrize(
    ("processes", "message"),
    [(1, "1 process"), (3, "3 processes")],
)
def test_what_is_complete_is_of_the_recorded_processes(processes: int, message: str) -> None:
    """A child process with another environment is not recorded."""
    assert completeness_sentence(processes) == f"Complete: {message}, every call recorded."


def test_findings_that_are_one_have_one_share() -> None:
    """Merged findings share one total: another total may be that of the spans."""
    first, other = (
        aggregate(READ, (MAIN,), ns=200 * MS, count=100),
        Frame("other", "/app/main.py", 99),
    )
    second = aggregate("SELECT c FROM t WHERE b = ?", (other,), ns=100 * MS, count=100)
    served = IndexHelp(("SCAN t",), "CREATE INDEX t_b ON t (b);", ("b",))
    scans = [
        one._replace(full_scan_steps=10**6, rows=100, vm_steps=3 * 10**6) for one in (first, second)
    ]
    profile = replace(
        profile_of(*scans), plans=tuple(Plan(one.statement, "app.db", "SCAN t") for one in scans)
    )
    (found,) = find_all(Report(profile), lambda *_: None, {}, Knows(served))
    assert found.share == pytest.approx(found.gain_ns / SECOND)


@pytest.mark.parametrize(("cpu_ms", "severity"), [(499, Severity.LOW), (500, Severity.HIGH)])
def test_commits_of_a_program_that_waits_are_low(cpu_ms: int, severity: Severity) -> None:
    """The writes come one at a time: a loop around them would hold the lock meanwhile."""
    change = aggregate("INSERT INTO t VALUES (?)", (VIEW,), ns=90 * MS, count=50)
    commit = aggregate("COMMIT", (VIEW,), ns=300 * MS, count=50, operation="commit")
    thread = change.thread
    profile = replace(profile_of(change, commit), thread_usage=(usage(thread, cpu_ms),))
    found = find_all(Report(profile), lambda *_: None, {})
    (one,) = (one for one in found if one.category == "commit_per_write")
    assert one.severity is severity


@pytest.mark.parametrize(("gain_ns", "is_reported"), [(2 * MS, True), (2 * MS - 1000, False)])
def test_a_thousandth_of_a_long_run_is_no_finding(gain_ns: int, is_reported: bool) -> None:
    """This holds however many milliseconds that is. A hundredth by one execution stays."""
    one = aggregate(READ, (MAIN,), ns=gain_ns * 100 // 99 + 100, count=100)
    profile = replace(profile_of(one), processes=(process(end_unix_ns=2 * SECOND),))
    assert (
        bool(find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})) == is_reported
    )
