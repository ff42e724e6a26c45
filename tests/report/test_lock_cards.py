"""The sentences about lock holders and waiting statements, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of
from report.test_cards import MS, SITE, finding, findings

from queryprof.analysis.call_sites import CallSite, place_of
from queryprof.analysis.lock_holders import LockHolders
from queryprof.analysis.report import Report
from queryprof.findings.find import _key_of_cause, _merge_consequence
from queryprof.findings.locks import Consequence, lock_findings
from queryprof.findings.program import Program
from queryprof.model import (
    FileWork,
    Frame,
    LockEvent,
    LockHold,
    Plan,
    Thread,
)
from queryprof.report.terminal.locks import lock_summary, long_hold_sentence

pytestmark = pytest.mark.once


def hold(thread: int, count: int, caller: Frame = MAIN) -> LockHold:
    return LockHold(
        "write",
        "app.db",
        "BEGIN IMMEDIATE",
        (QUERY, caller),
        "",
        Thread(1, f"T{thread}"),
        "COMMIT",
        (QUERY, caller),
        count,
        count * 50 * MS,
        50 * MS,
        count * MS,
        count * 50 * MS,
        count,
        0,
    )


def event(kind: str, thread: int, start_ms: int, ms: int) -> LockEvent:
    return LockEvent(
        kind,
        "app.db",
        "BEGIN IMMEDIATE",
        SITE,
        "",
        Thread(1, f"T{thread}"),
        "COMMIT",
        SITE,
        start_ms * MS,
        ms * MS,
    )


def test_holds_of_all_threads_are_counted_and_a_wait_once() -> None:
    """A call that waits for three holds by one line counts once, and waited for all three."""
    work = FileWork(
        "BEGIN IMMEDIATE",
        SITE,
        "",
        Thread(1, "T4"),
        "execute",
        1,
        1,
        150 * MS,
        150 * MS,
        0,
        0,
        0,
        0,
        0,
        0,
    )
    profile = replace(
        profile_of(aggregate("BEGIN IMMEDIATE", SITE, ns=200 * MS, count=4)),
        file_work=(work,),
        lock_holds=tuple(hold(thread, 5) for thread in range(3)),
        lock_events=(
            *(event("write", thread, 50 * thread, 50) for thread in range(3)),
            event("wait", 4, 0, 150),
        ),
    )
    found = next(
        one for one in findings(profile) if one.category in ("lock_wait", "long_transaction")
    )
    assert found.evidence[0].startswith("blocked 1 other call for 150 ms (longest 150 ms)")
    assert found.evidence[1].startswith(
        "transactions took the write lock on this line 15 times and held it for 750 ms in total"
        " (longest 50.0 ms)"
    )
    assert found.evidence[1].endswith("the transactions changed 15 rows")


@pytest.mark.parametrize(
    ("more_ns", "function", "category"),
    [(0, "query", "full_scan"), (2, "query", "lock_wait"), (0, "other", "lock_wait")],
)
def test_what_a_transaction_takes_long_for_is_why_others_wait(
    more_ns: int, function: str, category: str
) -> None:
    """A statement of the same function takes half of the time for which the lock is held."""
    began = aggregate(
        "BEGIN IMMEDIATE", (replace(QUERY, function="query"), MAIN), ns=4 * MS, count=4
    )
    site = (replace(QUERY, function=function, line=QUERY.line + 1), MAIN)
    scanned = aggregate("SELECT a FROM t WHERE b = ?", site, ns=200 * MS, count=50)
    scanned = scanned._replace(full_scan_steps=50 * 100_000, vm_steps=50 * 500_000)
    profile = replace(
        profile_of(scanned, began), plans=(Plan(scanned.statement, "app.db", "SCAN t"),)
    )
    (scan,) = (one for one in findings(profile) if one.category == "full_scan")
    held_ns = 2 * scan.gain_ns + more_ns
    held = replace(
        hold(1, 1),
        path=began.path,
        total_ns=held_ns,
        max_ns=held_ns,
        database_ns=held_ns,
        database_of_ns=held_ns,
    )
    events = (replace(event("write", 1, 0, 300), path=began.path), event("wait", 4, 0, 200))
    found = findings(replace(profile, lock_holds=(held,), lock_events=events))
    waits = [one for one in found if "blocked" in " ".join(one.evidence)]
    assert [one.category for one in waits] == [category]


@pytest.mark.parametrize(
    ("frame", "held_ns"), [(None, 100), (QUERY, 0)], ids=["no place", "no lock"]
)
def test_what_holds_no_lock_at_a_known_place_has_no_other_cause(
    frame: Frame | None, held_ns: int
) -> None:
    """A loop that a statement blocks does not matter to another statement of its function."""
    waits = replace(finding(0.4, 400), category="blocked_loop", statement="B", site=CallSite(frame))
    scan = replace(finding(0.4, 400), category="full_scan", statement="A", site=CallSite(frame))
    found = {("A", place_of(frame)): scan}
    assert _key_of_cause(Consequence(waits, is_of_work=True, held_ns=held_ns), found) is None
    assert _key_of_cause(
        Consequence(replace(waits, site=CallSite(QUERY)), True, 100),
        {("A", place_of(QUERY)): replace(scan, site=CallSite(QUERY))},
    )


def test_a_transaction_that_no_call_waited_for_hides_no_cause() -> None:
    """It is mentioned in the cause."""
    own = replace(finding(0.4, 400), evidence=("slow",))
    held = replace(own, category="long_transaction", evidence=("held",), doubt="No call waited.")
    assert _merge_consequence(own, Consequence(held, False)) == replace(
        own, evidence=("slow", "held")
    )
    waited = _merge_consequence(own, Consequence(replace(held, doubt=""), False))
    assert waited.category == "long_transaction"


def test_a_helper_that_holds_and_waits_is_shown_by_its_callers() -> None:
    """Two callers of one helper are two holders. The lines are those of the callers."""
    helper = Frame("run", "/app/db.py", 9)
    save, load = Frame("save", "/app/a.py", 20), Frame("load", "/app/b.py", 24)
    used = [
        aggregate(f"SELECT {name} FROM t{number}", (helper, caller))
        for number, caller in enumerate((save, load) * 4)
        for name in ("a", "b")
    ]
    taken = aggregate("BEGIN IMMEDIATE", (helper, save), ns=200 * MS, count=4)
    held = replace(hold(1, 5), path=(helper, save), end_path=(helper, save))
    holds = replace(event("write", 1, 0, 50), path=(helper, save), end_path=(helper, save))
    waits = replace(event("wait", 2, 0, 50), path=(helper, load))
    profile = replace(profile_of(*used, taken), lock_holds=(held,), lock_events=(holds, waits))
    (found,) = [
        one for one in findings(profile) if "lock" in one.category or "trans" in one.category
    ]
    assert found.site.frame == save
    assert any("b.py:24" in line for line in found.evidence)
    assert any("until COMMIT in line 20" in line for line in found.evidence)


def test_callers_that_nobody_waited_for_are_no_part_of_a_holder() -> None:
    """Two functions lock through one helper. The figures are those of the holder that others waited
    for.
    """
    monthly, bulk = Frame("monthly", "/app/a.py", 20), Frame("bulk", "/app/b.py", 24)
    took = aggregate("BEGIN IMMEDIATE", (QUERY, monthly), ns=200 * MS, count=4)
    holds = [
        replace(hold(thread, count), path=(QUERY, by), end_path=(QUERY, by))
        for thread, count, by in ((1, 4, monthly), (2, 60, bulk))
    ]
    held = replace(event("write", 1, 0, 50), path=(QUERY, monthly), end_path=(QUERY, monthly))
    waits = event("wait", 3, 0, 50)
    profile = replace(profile_of(took), lock_holds=tuple(holds), lock_events=(held, waits))
    (found,) = [
        one for one in findings(profile) if "lock" in one.category or "trans" in one.category
    ]
    assert any("took the write lock on this line 4 times" in line for line in found.evidence)


def test_two_callers_that_were_waited_for_are_two_findings() -> None:
    """Each has its own figures. Findings that are too small alone are combined."""
    callers = [Frame(name, "/app/a.py", 20 + at) for at, name in enumerate(("m", "b", "c", "d"))]
    long = [hold(at, 4, callers[at]) for at in range(4)]
    events = []
    for at, ms in enumerate((50, 60, 6, 7)):
        held = event("write", at, 1000 * at, ms)
        events += [replace(held, path=(QUERY, callers[at]), end_path=(QUERY, callers[at]))]
        events += [event("wait", 9, 1000 * at, ms)]
    took = aggregate("BEGIN IMMEDIATE", SITE, ns=900 * MS, count=16)
    profile = replace(profile_of(took), lock_holds=tuple(long), lock_events=tuple(events))
    found = list(lock_findings(Program(Report(profile), lambda *_: None, {})))
    waited = [one.finding.evidence[0].split(" (longest")[0] for one in found]
    blocked = {"50.0 ms": 1, "60.0 ms": 1, "13.0 ms": 2}
    assert waited == [
        f"blocked {count} other {'call' if count == 1 else 'calls'} for {ns}"
        for ns, count in blocked.items()
    ]
    assert [
        sum("took the write lock on this line 4 times" in line for line in one.finding.evidence)
        for one in found
    ] == [
        1,
        1,
        0,
    ]


def test_one_path_on_two_hosts_is_two_files() -> None:
    held, waits = event("write", 1, 0, 50), event("wait", 2, 0, 50)
    waits = replace(waits, thread=Thread(2, "T2"))
    assert LockHolders([held, waits], {1: "a", 2: "a"}).blockers_of(waits)
    assert not LockHolders([held, waits], {1: "a", 2: "b"}).blockers_of(waits)


@pytest.mark.parametrize(("ms", "is_named"), [(999, False), (1_000, True)])
@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_long_write_lock_is_named_even_if_no_call_waited(
    ms: int, is_named: bool, kind: str
) -> None:
    """A process that was not recorded may have waited for it."""
    held = replace(hold(1, 1), kind=kind, max_ns=ms * MS)
    report = Report(replace(profile_of(aggregate("SELECT 1")), lock_holds=(held,)))
    sentence = long_hold_sentence(report)
    assert bool(sentence) == bool(lock_summary(report)) == (is_named and kind == "write")
    assert not sentence or sentence.startswith("Longest write lock: 1.00 s, ")
