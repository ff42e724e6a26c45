"""Advice about loops, repeats and shares, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, process, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.model import Frame, ParameterSample, Profile, Thread
from queryprof.model.files import FileWork

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a FROM t WHERE b = ?"


def findings(profile: Profile) -> tuple[Finding, ...]:
    """Return the findings of a program that runs for one second."""

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if frame.function == MAIN.function else None

    return find_all(Report(profile), loop, {})


@pytest.mark.parametrize("has_parent", [True, False])
def test_texts_of_a_loop_s_values_are_a_consequence_of_the_loop(has_parent: bool) -> None:
    """If the loop runs over the rows of another query, a join leaves no text to prepare. Otherwise
    the loop is in doubt and the texts are not.
    """
    parent = aggregate("SELECT b FROM s", SITE, ns=MS, count=1)._replace(rows=100)
    one = aggregate(READ, SITE, ns=300 * MS, count=100)
    profile = profile_of(*[parent] * has_parent, one)
    found = {each.statement: each for each in findings(replace(profile, texts={READ: 100}))}[READ]
    assert found.category == ("n_plus_one" if has_parent else "re_prepare")
    assert any("about 100 texts" in line for line in found.evidence)
    assert "as parameters" in found.fix


@pytest.mark.parametrize("operation", ["execute", "fetchone"])
def test_the_rows_of_an_outlier_are_not_taken_from_what_a_loop_takes(operation: str) -> None:
    """One of 1,000 executions took 300 of 310 ms, because another program used the processor."""
    parent = aggregate("SELECT b FROM s", SITE, ns=MS, count=1)._replace(rows=1000)
    executed = aggregate(READ, SITE, ns=7 * MS, count=1000)
    fetched = aggregate(READ, SITE, ns=3 * MS, count=5000, operation="fetchone")
    fetched = fetched._replace(rows=5000)
    slow = fetched if operation == "fetchone" else executed
    slower = slow._replace(
        self_ns=slow.self_ns + 300 * MS, total_ns=slow.total_ns + 300 * MS, max_ns=300 * MS
    )
    executed, fetched = (slower if one is slow else one for one in (executed, fetched))
    executed = executed._replace(execution_max_ns=300 * MS)
    found = findings(profile_of(parent, executed, fetched))
    (loop,) = [one for one in found if one.category == "n_plus_one"]
    assert loop.gain_ns == pytest.approx(0.999 * (10 - 0.7 * 3 * 0.8) * MS, rel=0.01)


@pytest.mark.parametrize(
    ("statement", "writes", "is_one"),
    [("SELECT a FROM t", False, True), ("SELECT a FROM t", True, False), (READ, False, False)],
    ids=["no parameters", "something is written", "parameters"],
)
def test_one_repeat_is_enough_where_nothing_can_differ(
    statement: str, writes: bool, is_one: bool
) -> None:
    one = aggregate(statement, SITE, ns=300 * MS, count=30)
    write = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=1)
    sample = ParameterSample(statement, SITE, 3, 1)
    found = findings(replace(profile_of(one, *[write] * writes), parameters=(sample,)))
    assert ("duplicate_query" in {each.category for each in found}) == is_one
    if is_one:
        assert found[0].gain_ns == pytest.approx(290 * MS)


def test_lists_of_values_have_as_many_parameters() -> None:
    """A single parameter cannot hold a list."""
    listed = "SELECT a FROM t WHERE b IN (?)"
    for statement, has_code in ((READ, True), (listed, False)):
        one = aggregate(statement, SITE, ns=300 * MS, count=100)
        profile = replace(profile_of(one), texts={statement: 100})
        (found,) = [each for each in findings(profile) if each.category == "re_prepare"]
        assert bool(found.code) == has_code
        assert ("'?' * len(values)" in found.fix) != has_code


@pytest.mark.parametrize(("rows", "is_one"), [(1, True), (2, False)])
def test_what_looks_for_a_list_of_values_is_for_many_items(rows: int, is_one: bool) -> None:
    one = aggregate("SELECT a FROM t WHERE b IN (?)", SITE, ns=300 * MS, count=100)
    found = findings(profile_of(one._replace(rows=100 * rows)))
    assert ("n_plus_one" in {each.category for each in found}) == is_one


@pytest.mark.parametrize("table", ["t", "u"])
def test_the_next_of_a_queue_depends_on_what_was_written(table: str) -> None:
    claim = aggregate("SELECT a FROM t WHERE b = ? LIMIT ?", SITE, ns=300 * MS, count=100)
    take = aggregate(f"UPDATE {table} SET b = ? WHERE a = ?", SITE, ns=MS, count=100)
    found = findings(profile_of(claim._replace(rows=100), take._replace(rows=100)))
    assert ("n_plus_one" in {each.category for each in found}) == (table == "u")


@pytest.mark.parametrize(("executing", "share"), [(1, 0.3), (2, 0.15)])
def test_processes_side_by_side_save_their_time_at_once(executing: int, share: float) -> None:
    """Each process ran for a second. A process that only waits for others does not count."""
    count = 100 // executing
    parts = [
        aggregate(READ, SITE, ns=300 * MS // executing, count=count)._replace(
            thread=Thread(number, "MainThread")
        )
        for number in range(1, executing + 1)
    ]
    processes = tuple(process(number) for number in (1, 2, 3))
    profile = replace(profile_of(*parts), processes=processes)
    found = findings(profile)[0]
    assert found.whole == "run"
    assert found.share == pytest.approx(share, rel=0.05)
    assert found.gain_ns == pytest.approx(share * 1000 * MS, rel=0.05)


@pytest.mark.parametrize("calls_itself", [True, False])
def test_a_walk_is_one_recursive_query(calls_itself: bool) -> None:
    walk = Frame("walk", "/app/tree.py", 7)
    path = (walk, walk, QUERY) if calls_itself else (walk, MAIN)
    (found,) = findings(profile_of(aggregate(READ, path, ns=300 * MS, count=100)))
    assert ("WITH RECURSIVE" in found.fix) == calls_itself
    assert any("recursion in line" in line for line in found.evidence) == calls_itself


@pytest.mark.parametrize(("steps", "category"), [(249, "autocommit_reads"), (250, "n_plus_one")])
def test_reads_in_turn_are_in_one_transaction_or_one_query(steps: int, category: str) -> None:
    """One card shows the gain of both. With many steps, the lock takes only a small part of the
    time.
    """
    one = aggregate(READ, SITE, ns=10 * MS, count=1000)._replace(vm_steps=1000 * steps)
    work = FileWork(
        READ,
        SITE,
        "",
        Thread(1, "MainThread"),
        "execute",
        calls=1000,
        lock_waits=0,
        lock_ns=0,
        max_lock_ns=0,
        syncs=0,
        sync_ns=0,
        read_bytes=16_000,
        read_ns=0,
        written_bytes=0,
        write_ns=0,
    )
    (found,) = findings(replace(profile_of(one), file_work=(work,)))
    assert found.category == category
    is_both = any(line.startswith("alternative fix: use one query") for line in found.evidence)
    assert is_both == (category == "autocommit_reads")


def test_threads_of_several_processes_wait_for_none_of_each_other() -> None:
    parts = [
        aggregate(READ, SITE, ns=150 * MS, count=50)._replace(thread=Thread(number, "MainThread"))
        for number in (1, 2)
    ]
    profile = replace(profile_of(*parts), processes=(process(1), process(2)))
    assert "threads" not in findings(profile)[0].doubt
