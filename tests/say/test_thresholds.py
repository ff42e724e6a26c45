"""Each threshold of a finding, from both sides, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from say.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.findings.find import find, is_part
from queryprof.analysis.findings.finding import Finding, Severity, severity_of
from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.model import (
    ErrorCount,
    Frame,
    Handoff,
    LockEvent,
    LockHold,
    ParameterSample,
    Plan,
    Profile,
    Thread,
)
from queryprof.model.loops import Distribution

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a FROM t WHERE b = ?"


def findings(profile: Profile, is_loop: bool = True) -> tuple[Finding, ...]:
    """Of a program whose run is a second."""

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if is_loop else None

    return find(Report(profile), loop, {})


def has(category: str, profile: Profile, is_loop: bool = True) -> bool:
    return category in {one.category for one in findings(profile, is_loop)}


SEVERITIES = [
        (0.1, 0, Severity.HIGH), (0.0999, 0, Severity.MEDIUM),
        (0.02, 0, Severity.MEDIUM), (0.0199, 0, Severity.LOW),
        (0.0, 100 * MS, Severity.HIGH), (0.0, 100 * MS - 1, Severity.LOW),
]  # fmt: skip


@pytest.mark.parametrize(("share", "span_ns", "severity"), SEVERITIES)
def test_what_is_in_doubt_is_high_or_low(share: float, span_ns: float, severity: Severity) -> None:
    expected = Severity.LOW if severity is Severity.MEDIUM else severity
    assert severity_of(share, span_ns, is_sure=False) is expected


@pytest.mark.parametrize(("share", "span_ns", "severity"), SEVERITIES)
def test_severity(share: float, span_ns: float, severity: Severity) -> None:
    assert severity_of(share, span_ns) is severity


@pytest.mark.parametrize(("errors", "is_complete"), [(3, True), (2, False)])
def test_a_call_that_failed_may_have_passed_no_statement(errors: int, is_complete: bool) -> None:
    """That of three calls is unknown, some of which failed."""
    unknown = aggregate("(unknown)", SITE, count=3)._replace(errors=errors)
    cautions = Report(profile_of(unknown)).overview.cautions
    assert (not any("the statement of" in one for one in cautions)) == is_complete


@pytest.mark.parametrize(("ns", "is_said"), [(300 * MS, True), (299 * MS, False)])
def test_a_query_of_much_of_the_run_is_said(ns: int, is_said: bool) -> None:
    """Where no other rule fits it; with no more than the lowest severity."""
    found = findings(profile_of(aggregate(READ, SITE, ns=ns, count=3)), is_loop=False)
    assert [(one.category, one.severity) for one in found] == (
        [("heavy_query", Severity.LOW)] if is_said else []
    )


@pytest.mark.parametrize(("ns", "is_said"), [(5 * MS, True), (900_000, False)])
def test_what_wins_little_is_no_finding(ns: int, is_said: bool) -> None:
    """Half a percent of the run, or a millisecond."""
    assert bool(findings(profile_of(aggregate(READ, SITE, ns=ns, count=100)))) == is_said


@pytest.mark.parametrize(("count", "is_loop"), [(20, True), (19, False)])
def test_a_loop_runs_twenty_times(count: int, is_loop: bool) -> None:
    assert has("n_plus_one", profile_of(aggregate(READ, SITE, ns=50 * MS, count=count))) == is_loop


@pytest.mark.parametrize(("rows", "is_one"), [(20, True), (21, False)])
def test_a_query_for_many_items_is_not_for_one(rows: int, is_one: bool) -> None:
    """Where only the source shows a loop."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)._replace(rows=50 * rows, vm_steps=0)
    assert has("n_plus_one", profile_of(one)) == is_one


@pytest.mark.parametrize(
    ("steps", "rows", "is_one"), [(999, 1, True), (1000, 1, False), (1139, 18, True), (1140, 18, False)]
)  # fmt: skip
def test_an_execution_that_works_hard_is_no_loop_s_fault(
    steps: int, rows: int, is_one: bool
) -> None:
    """From 1,000 VM steps on, and 60 for each row and one more."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)
    one = one._replace(rows=50 * rows, vm_steps=50 * steps)
    assert has("n_plus_one", profile_of(one)) == is_one


@pytest.mark.parametrize(
    ("rows", "is_parent"), [(90, True), (89, False), (110, True), (111, False)]
)
def test_a_parent_has_as_many_rows_as_there_are_executions(rows: int, is_parent: bool) -> None:
    """A tenth more or less."""
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
    ("samples", "repeats", "is_one"), [(4, 2, True), (4, 1, False), (3, 3, False), (100, 50, True), (100, 49, False)]
)  # fmt: skip
def test_half_of_the_samples_are_repeats(samples: int, repeats: int, is_one: bool) -> None:
    """Of four at the least."""
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
    """Twenty of them at the least."""
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


@pytest.mark.parametrize(
    ("runs", "texts", "is_one"),
    [(100, 50, True), (101, 50, False), (60, 49, False), (9000, 129, True), (9000, 128, False)],
)
def test_half_of_the_texts_differ(runs: int, texts: int, is_one: bool) -> None:
    """Fifty at the least; or more than the 128 that a connection keeps, in turns."""
    profile = replace(
        profile_of(aggregate(READ, SITE, ns=80 * MS, count=runs)), texts={READ: texts}
    )
    assert has("re_prepare", profile, is_loop=False) == is_one


@pytest.mark.parametrize(
    ("runs", "ns", "is_one"), [(1000, 200 * MS, True), (999, 200 * MS, False), (1000, 99 * MS, False), (1000, 300 * MS, False)]
)  # fmt: skip
def test_many_cheap_ones_take_a_tenth(runs: int, ns: int, is_one: bool) -> None:
    """A thousand of them, each below 300 us."""
    assert has("many_cheap", profile_of(aggregate(READ, SITE, ns=ns, count=runs)), False) == is_one


@pytest.mark.parametrize(("steps", "is_one"), [(1000, True), (1001, False)])
def test_a_cheap_one_takes_few_steps(steps: int, is_one: bool) -> None:
    """Of a query that works as long as it is called, asking for many at once saves little."""
    each = aggregate(READ, SITE, ns=200 * MS, count=1000)._replace(vm_steps=1000 * steps)
    assert has("many_cheap", profile_of(each), is_loop=False) == is_one


T1, T2 = Thread(1, "T1"), Thread(1, "T2")


def waited(wait_ms: float, database_share: float, held_ms: int = 200, holds: int = 2) -> Profile:
    """A write lock that another thread waits for, twice."""
    held = LockHold(
        "write", "a.db", "BEGIN", SITE, "", T1, "COMMIT", SITE, holds, 2 * held_ms * MS, held_ms * MS,
        int(2 * held_ms * MS * database_share), 2 * held_ms * MS, 0, 0,
    )  # fmt: skip
    events = tuple(
        event
        for start in (0, 1000 * MS)
        for event in (
            LockEvent("write", "a.db", "BEGIN", SITE, "", T1, "COMMIT", SITE, start, held_ms * MS),
            LockEvent("wait", "a.db", READ, SITE, "", T2, READ, SITE, start, int(wait_ms / 2 * MS)),
        )
    )
    return replace(profile_of(aggregate("BEGIN", SITE)), lock_holds=(held,), lock_events=events)


@pytest.mark.parametrize(("ms", "is_said"), [(10, True), (9.99, False)])
def test_ten_milliseconds_of_waiting_are_said(ms: float, is_said: bool) -> None:
    assert has("lock_wait", waited(ms, 1.0)) == is_said


@pytest.mark.parametrize(
    ("share", "holds", "category"),
    [(0.5, 2, "long_transaction"), (0.51, 2, "lock_wait"), (0.0, 2000, "long_transaction"), (0.0, 2001, "lock_wait")],
)  # fmt: skip
def test_a_transaction_is_long_when_half_of_it_is_other_work(
    share: float, holds: int, category: str
) -> None:
    """And that takes 0.2 ms each time."""
    (found,) = findings(waited(50, share, holds=holds))
    assert found.category == category


def test_a_hold_without_any_time_is_no_error() -> None:
    """In a trace from elsewhere."""
    profile = waited(50, 0.5)
    (hold,) = profile.lock_holds
    assert findings(replace(profile, lock_holds=(replace(hold, total_ns=0),))) == ()


@pytest.mark.parametrize(("end", "is_endless"), [("(unknown)", True), ("COMMIT", False)])
def test_a_transaction_that_nothing_has_ended(end: str, is_endless: bool) -> None:
    """Of a thread that an exception ended, for instance."""
    profile = waited(50, 1.0)
    events = tuple(
        replace(event, end_statement=end) if event.kind == "write" else event
        for event in profile.lock_events
    )
    (found,) = findings(replace(profile, lock_events=events))
    assert found.fix.startswith("COMMIT it, or ROLLBACK") == is_endless
    assert found.category == ("long_transaction" if is_endless else "lock_wait")


def test_own_holds_keep_nobody_waiting() -> None:
    """Nor does a lock of the same thread that is taken when the wait ends."""
    profile = waited(50, 1.0)
    hold, wait, *_ = profile.lock_events
    own = replace(profile, lock_events=(replace(hold, thread=T2, start_unix_ns=50 * MS), wait))
    assert not has("lock_wait", own)


@pytest.mark.parametrize(("steps", "is_said"), [(9, False), (10, True)])
def test_a_scan_counts_from_a_thousand_rows_on(steps: int, is_said: bool) -> None:
    """A plan that scans, and counters that show how much: see test_marks for the figures."""
    one = aggregate(READ, SITE, ns=50 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 1000 * steps, full_scan_steps=50 * 100 * steps
    )
    profile = replace(profile_of(one), plans=(Plan(READ, "app.db", "SCAN t"),))
    assert has("full_scan", profile) == is_said


ERROR = "sqlite3.OperationalError: database is locked (SQLITE_BUSY"


@pytest.mark.parametrize(
    ("exception", "is_one"),
    [
        (f"{ERROR} of a read transaction)", True), (f"{ERROR}_SNAPSHOT)", True), (f"{ERROR})", False),
        ("sqlite3.OperationalError", False),
    ],
)  # fmt: skip
def test_a_refused_upgrade_is_no_wait_in_vain(exception: str, is_one: bool) -> None:
    profile = replace(
        profile_of(aggregate(READ, SITE)), errors=(ErrorCount(READ, SITE, "execute", exception, 2),)
    )
    assert has("lock_upgrade", profile) == is_one


def reads(thread: Thread, max_ms: int, log_bytes: int) -> Profile:
    """A read transaction of a thread, beside a write of the first."""
    held = LockHold(
        "read", "a.db", READ, SITE, "", thread, "COMMIT", SITE, 1, max_ms * MS, max_ms * MS, 0, 0,
        None, log_bytes,
    )  # fmt: skip
    write = replace(held, kind="write", thread=T1, total_ns=MS, max_ns=MS, log_bytes=0)
    return replace(profile_of(aggregate(READ, SITE)), lock_holds=(held, write))


@pytest.mark.parametrize(
    ("thread", "max_ms", "log_bytes", "is_one"),
    [(T2, 1000, 4_096_001, True), (T2, 1000, 4_096_000, False), (T1, 1000, 4_096_001, False)],
)
def test_a_reader_pins_a_log_that_has_grown(
    thread: Thread, max_ms: int, log_bytes: int, is_one: bool
) -> None:
    """Beyond what SQLite writes back, and another one writes: a writer's own reading pins nothing."""
    assert has("pinned_wal", reads(thread, max_ms, log_bytes)) == is_one


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
    assert is_part(code, of) == is_one


@pytest.mark.parametrize(
    ("runs", "rows", "is_loop", "is_one"),
    [
        (20, 20, True, True), (19, 19, True, False), (20, 20, False, False),
        (20, 40, True, True), (20, 41, True, False),
    ],
)  # fmt: skip
def test_a_loop_changes_rows_one_by_one(runs: int, rows: int, is_loop: bool, is_one: bool) -> None:
    """Twenty times, no more than two rows each."""
    one = aggregate("UPDATE t SET a = ? WHERE b = ?", SITE, ns=50 * MS, count=runs)
    assert has("single_changes", profile_of(one._replace(rows=rows)), is_loop) == is_one


@pytest.mark.parametrize(
    ("exception", "is_said"),
    [("database is locked (SQLITE_BUSY)", True), ("database is locked (SQLITE_LOCKED)", False)],
)
def test_calls_whose_timeout_was_over_have_failed(exception: str, is_said: bool) -> None:
    error = ErrorCount(READ, SITE, "execute", f"sqlite3.OperationalError: {exception}", 2)
    other = replace(error, statement="SELECT 1")
    (found,) = findings(replace(waited(50, 1.0), errors=(error, other)))
    said = "2 of their calls failed when the timeout was over: database is locked"
    assert (said in found.evidence) == is_said


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_long_transaction_s_awaited_calls_wait_for_the_loop(is_awaited: bool) -> None:
    none = Distribution()
    handed = Handoff("aiosqlite", SITE, "", 1, 0, 0, none, none, none, none)
    profile = replace(waited(50, 0.1), handoffs=(handed,) * is_awaited)
    (found,) = findings(profile)
    assert found.category == "long_transaction"
    assert found.fix.endswith("meanwhile is in this time.") == is_awaited


@pytest.mark.parametrize(("excess_ms", "gain_ms"), [(26, 74), (25, 100)])
def test_one_long_execution_is_in_no_gain(excess_ms: int, gain_ms: int) -> None:
    """Where it is more than a quarter of the time: of 100 ms, in which the others take 0.75 ms each."""
    one = aggregate(READ, SITE, ns=100 * MS, count=100)
    bucket = {histogram_bucket(700_000): 99, histogram_bucket(excess_ms * MS): 1}
    longest = one._replace(histogram=bucket, execution_max_ns=excess_ms * MS + 700_000)
    (found,) = [each for each in findings(profile_of(longest)) if each.category == "n_plus_one"]
    assert found.gain_ns == pytest.approx(0.99 * gain_ms * MS, rel=0.02)
