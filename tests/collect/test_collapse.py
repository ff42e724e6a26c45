"""Merges of random traces: the sums do not depend on order and grouping, collapsed or not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from collect.conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, Run
from queryprof.analysis.lock_holders import LockHolders, host_by_process
from queryprof.analysis.overview import overview_of
from queryprof.analysis.report import Report
from queryprof.collect.collapse import MAX_LISTED, SINGLE_EVENT_TABLES
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.findings.groups import statement_groups
from queryprof.findings.whole import PROCESSES, RUN, reference_time
from queryprof.trace.collapsed import MORE_PROCESSES
from queryprof.trace.declaration import FIRST, KEY, LAST, LEAST, LONGEST, MOST, SUM, Column, Table
from queryprof.trace.opening import opened_finished_trace
from queryprof.trace.recent_tables import RECENT_TABLES
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE, TABLES

pytestmark = pytest.mark.once

Rows = dict[str, dict[tuple[object, ...], dict[str, Any]]]

FORMS = {"argv": '["python"]', "unmeasured": None}
HOUR_NS = 3600 * 10**9


def value_of(draw: Random, column: Column, known: dict[str, list[int]]) -> object:
    """Return a value that a recording could have."""
    ids = known[column.reference] if column.reference else [0]
    number = draw.randint(1, 9)
    kinds: dict[str, object] = {
        "TEXT": ",".join(map(str, draw.sample(ids, draw.randint(1, len(ids))))),
        "INTEGER": draw.choice(ids),
        "REAL": float(number),
    }
    if not column.reference:
        instant = 10**18 + (column.name == "end_unix_ns") * number * HOUR_NS
        kinds["TEXT"] = FORMS.get(column.name, f"{column.name} {number % 3}")
        kinds["INTEGER"] = instant if column.name.endswith("_unix_ns") else number
    return None if column.is_optional and draw.random() < 0.3 else kinds[column.sql_type]


def write_random(path: str, seed: int) -> None:
    draw, known = Random(seed), {}
    store = TraceStore(path)
    with store.transaction():
        for table in TABLES:
            if table.name == "setting":
                continue
            count = draw.randint(1, 5)
            rows = [[value_of(draw, one, known) for one in table.columns] for _ in range(count)]
            if table.width:
                store.add_intervals(table.name, 1 << 27, rows)
            else:
                known[table.name] = list(dict.fromkeys(store.add(table.name, rows)))
    store.close()


NOT_COLLAPSED = {*SINGLE_EVENT_TABLES, "process", *(table.name for table in RECENT_TABLES)}
"""Tables that keep single processes, or that a collapsed trace lacks."""


def content_of(path: str) -> Rows:
    """Return the sums of a trace by the texts of its keys and the names of the threads."""
    found: Rows = {}
    with opened_finished_trace(path) as trace:
        known: dict[str, Any] = {}
        for table in TABLES:
            if table.name == "setting":
                continue
            rows = list(trace.resolved_rows(table.name, known))
            if table.has_id:
                keys = len(table.key)
                names: dict[Any, Any] = {row[0]: (table.name, *row[1 : keys + 1]) for row in rows}
                if table.name == "process":
                    names = dict.fromkeys((0, *names), "a process")
                known[table.name] = {None: None, **names}
                rows = [row[1:] for row in rows]
            is_summed = table.key and not table.kept and table.name not in NOT_COLLAPSED
            if is_summed and not table.width:
                found[table.name] = folded(table, rows)
    return found


def folded(table: Table, rows: Iterable[tuple[Any, ...]]) -> dict[Any, dict[str, Any]]:
    """Combine the rows of each key, by the role of each column."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        values = dict(zip(table.names, row, strict=True))
        key = tuple(values[name] for name in table.key)
        before = found.get(key)
        if before is None:
            found[key] = values
            continue
        joined = {
            column.name: JOINS[column.role](before, values, column.name) for column in table.columns
        }
        found[key] = joined
    for values in found.values():  # that of one of them, which depends on the order
        for column in table.columns:
            if column.role in (FIRST, LAST, LONGEST):
                del values[column.name]
    return found


def sums(one: Any, other: Any, name: str) -> Any:
    return None if None in (one[name], other[name]) else one[name] + other[name]


def least(one: Any, other: Any, name: str) -> Any:
    counted = [each[name] for each in (one, other) if each["count"]]
    return min(counted, default=one[name])


JOINS: dict[int, Callable[[Any, Any, str], Any]] = {
    KEY: lambda one, _, name: one[name],
    SUM: sums,
    MOST: lambda one, other, name: max(one[name], other[name]),
    LEAST: least,
    **dict.fromkeys((FIRST, LAST, LONGEST), lambda one, _, name: one[name]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(seeds=st.lists(st.integers(0, 10**6), min_size=2, max_size=4), order=st.randoms())
def test_the_same_in_any_order_and_grouping(folder: Path, seeds: list[int], order: Random) -> None:
    """This test covers new columns without changes."""
    for path in folder.iterdir():
        path.unlink()
    os.chdir(folder)
    inputs = [f"{number}.qprof" for number in range(len(seeds))]
    for path, seed in zip(inputs, seeds, strict=True):
        write_random(path, seed)
    merge_traces("merged.qprof", inputs)
    expected = content_of("merged.qprof")
    shuffled = order.sample(inputs, len(inputs))
    merge_traces("collapsed.qprof", shuffled, collapses=True)
    assert content_of("collapsed.qprof") == expected
    merge_traces("part.qprof", shuffled[:2], collapses=True)
    merge_traces("whole.qprof", ["part.qprof", *shuffled[2:]])
    assert content_of("whole.qprof") == expected
    merge_traces("again.qprof", ["whole.qprof"], collapses=True)
    assert content_of("again.qprof") == expected
    with opened_finished_trace("collapsed.qprof") as trace:
        threads = [
            name for process, name in trace.rows("thread", ("process_id", "name")) if not process
        ]
    assert len(threads) == len(set(threads))


def test_every_role_has_its_fold() -> None:
    roles = {column.role for table in TABLES for column in table.columns}
    assert roles <= JOINS.keys()


def processes(path: str, number: int, first: int = 0, **further: object) -> None:
    """Write a trace of this many processes of ten seconds, which start a second apart. Each has a
    call in two threads with its own names.
    """
    store = TraceStore(path)
    columns = TABLE["process"].columns
    values = {column.name: value_of(Random(1), column, {}) for column in columns}
    values |= dict.fromkeys(
        ("service", "version", "environment", "counters_off", "files_off", "window_start_unix_ns")
    )
    values |= {
        "clean_end": 1,
        "lost_counters": 2,
        "read_bytes": 3,
        "flush_ns": 5,
        "host": "h",
    }
    with store.transaction():
        statement = store.id("statement", "SELECT 1", None, "sqlite")
        span, path_id = store.id("span", ""), store.id("stack", "")
        for at in range(first, first + number):
            start = 10**18 + at * 10**9
            own = {"pid": at + 1, "start_unix_ns": start, "end_unix_ns": start + 10 * 10**9}
            row = {**values, **own, "folded_calls": 1, **further}
            (process,) = store.add("process", [[row[name] for name in TABLE["process"].names]])
            for name in ("a", "b"):
                thread = store.id("thread", process, f"{name}-{at}")
                key = (statement, path_id, span, thread, "execute")
                count = len(TABLE["aggregate"].value_names)
                store.add("aggregate", [(*key, 1, 0, 1, *[1] * (count - 3))])
    store.close()


def test_the_most_threads_of_a_process_are_no_sum() -> None:
    for name, number in (("a", 3), ("b", 2)):
        processes(f"{name}.qprof", number)
        merge_traces(f"{name}-all.qprof", [f"{name}.qprof"], collapses=True)
    merge_traces("all.qprof", ["a-all.qprof", "b-all.qprof"], collapses=True)
    collapsed = read_profile("all.qprof").collapsed
    assert collapsed
    assert collapsed.most_threads == 2


def test_the_run_time_of_a_window_begins_with_it() -> None:
    """The processes have begun earlier."""
    processes("a.qprof", 2, window_start_unix_ns=10**18 + 4 * 10**9, lost_windows=0)
    merge_traces("all.qprof", ["a.qprof"], collapses=True)
    collapsed = read_profile("all.qprof").collapsed
    assert collapsed
    assert collapsed.executing_wall_ns == (6 + 7) * 10**9


@pytest.mark.parametrize(
    ("number", "more", "window"),
    [
        pytest.param(MAX_LISTED, 0, None, marks=pytest.mark.slow),
        pytest.param(MAX_LISTED + 5, 5, None, marks=pytest.mark.slow),
        (MAX_LISTED + 5, 5, 10**18 - 10**9),
    ],
)
@pytest.mark.slow
def test_processes_beyond_the_listed_ones_are_in_all_figures(
    queryprof: Run, number: int, more: int, window: int | None
) -> None:
    """This also holds if the collapsed trace is merged again, with and without --collapse."""
    in_windows = {"window_start_unix_ns": window, "lost_windows": 1 if window else None}
    processes("a.qprof", number, **in_windows)
    processes("b.qprof", 3, first=number, clean_end=0, **in_windows)
    processes("c.qprof", 2, first=number + 3, service="another", **in_windows)
    merge_traces("d.qprof", ["a.qprof"], collapses=True)
    merge_traces("plain.qprof", ["a.qprof", "b.qprof", "c.qprof"])
    plain = read_profile("plain.qprof")
    for collapses in (True, False):
        merge_traces("e.qprof", ["d.qprof", "b.qprof", "c.qprof"], collapses=collapses)
        profile = read_profile("e.qprof")
        assert (profile.unlisted.count if profile.unlisted else 0) == more + collapses
        listed = [one.clean_end for one in profile.processes]
        assert listed.count(False) == 3  # those that were killed
        assert {one.service for one in profile.processes} == {None, "another"}
        found, expected = overview_of(profile), overview_of(plain)
        for figure in ("processes", "calls", "process_ns", "run_ns", "profiler_ns", "executions"):
            assert getattr(found, figure) == getattr(expected, figure), figure
        for figure in ("lost_counters", "read_bytes", "folded_calls", "lost_windows"):
            assert profile.total(figure) == plain.total(figure), figure
        assert reference_time(profile, 0) == (plain.process_ns, PROCESSES)
        assert any("ended normally" in o for o in found.cautions) == bool(profile.unlisted)
        assert set(expected.cautions) <= set(found.cautions)
        if profile.unlisted:
            latest = [one for one in plain.processes if one.pid > MAX_LISTED]
            assert profile.unlisted.start_unix_ns in {one.recorded_unix_ns for one in latest}
            assert profile.unlisted.end_unix_ns in {one.end_unix_ns for one in latest}
    shown = queryprof("report", "e.qprof", "--by", "thread").stdout
    assert "a-0" in shown


@pytest.mark.parametrize(("number", "idle"), [(3, 1), (1, 1), (1, 0)])
@pytest.mark.repeats
def test_threads_are_those_of_the_plain_trace_and_shares_are_of_all_processes(
    number: int, idle: int
) -> None:
    """A collapsed trace does not know which processes ran at the same time."""
    processes("a.qprof", number)
    processes("b.qprof", idle, first=9)
    change("b.qprof", "DELETE FROM aggregate")
    merge_traces("plain.qprof", ["a.qprof", "b.qprof"])
    merge_traces("collapsed.qprof", ["a.qprof", "b.qprof"], collapses=True)
    plain, collapsed = (read_profile(f"{name}.qprof") for name in ("plain", "collapsed"))
    name = PROCESSES if number > 1 else RUN
    assert reference_time(collapsed, 0) == (read_profile("a.qprof").process_ns, name)
    of_plain, of_collapsed = (statement_groups(Report(one)) for one in (plain, collapsed))
    assert [(one.threads, one.processes) for one in of_collapsed] == [
        (one.threads, one.processes) for one in of_plain
    ]
    assert of_plain[0].threads == 2


def test_single_executions_keep_their_process() -> None:
    """However many processes there are, those of the kept rows are listed."""
    number = MAX_LISTED + 20
    processes("a.qprof", number)
    store = sqlite3.connect("a.qprof")
    for thread, process, start in (
        (2 * number - 1, number, 0),
        (2 * number - 3, number - 1, 0),
    ):
        lock = ["write" if process == number else "wait", "t.db", 1, 1, 1, thread, 1, 1]
        store.execute(
            f"INSERT INTO lock_event VALUES ({', '.join('?' * 13)})",
            (process, *lock, 10**18 + start, 10**8, 1, 0),
        )
    store.commit()
    store.close()
    merge_traces("b.qprof", ["a.qprof"], collapses=True)
    profile = read_profile("b.qprof")
    assert len(profile.processes) == MAX_LISTED + 2
    pids = {one.id: one.pid for one in profile.processes}
    held, waits = sorted(profile.lock_events, key=lambda one: one.kind == "wait")
    assert [pids[one.thread.process_id] for one in (held, waits)] == [number, number - 1]
    ((blocker, _),) = LockHolders([held, waits], host_by_process(profile)).blockers_of(waits)
    assert blocker == held


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO setting VALUES ('more_processes', 1)",
        "INSERT INTO setting VALUES ('more_wall_ns', 7), ('more_start_unix_ns', 7)",
        "INSERT INTO setting VALUES ('most_threads', -1)",
    ],
)
def test_settings_that_no_merge_leaves(command: Command, sql: str) -> None:
    processes("a.qprof", 2)
    change("a.qprof", sql)
    for arguments in (("report", "a.qprof"), ("merge", "b.qprof", "a.qprof", "a.qprof")):
        code, _, errors = command(*arguments)
        assert (code, len(errors.splitlines())) == (2, 1)
        assert "setting" in errors


def test_settings_that_are_too_large_to_be_added(command: Command) -> None:
    processes("a.qprof", 2)
    names = ", ".join(f"('{name}', {1 << 62})" for name in MORE_PROCESSES)
    change("a.qprof", f"INSERT INTO setting VALUES {names}")
    code, _, errors = command("merge", "b.qprof", "a.qprof", "a.qprof")
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "too large" in errors


@pytest.mark.strange_traces
@pytest.mark.parametrize("end", ["start_unix_ns", "start_unix_ns - 5", "0"])
@pytest.mark.repeats
def test_a_clock_that_was_set_back(end: str) -> None:
    """Processes that ended before they began are counted, and the trace is readable."""
    processes("a.qprof", MAX_LISTED + 7)
    change("a.qprof", f"UPDATE process SET end_unix_ns = {end}")
    merge_traces("b.qprof", ["a.qprof"], collapses=True)
    for path in ("b.qprof", "c.qprof"):
        profile = read_profile(path)
        assert profile.process_count == MAX_LISTED + 7
        assert overview_of(profile).calls == 2 * (MAX_LISTED + 7)
        merge_traces("c.qprof", ["b.qprof"], collapses=True)


def test_rows_of_what_is_not_kept_go_in_a_later_transaction() -> None:
    """A second process has slower requests: the calls of the first one's requests are removed with
    them.
    """
    store = TraceStore("a.qprof")
    draw, known = Random(3), {}  # type: ignore[var-annotated]
    with store.transaction():
        for name in ("process", "statement", "frame", "stack", "span", "thread"):
            row = [value_of(draw, one, known) for one in TABLE[name].columns]
            known[name] = store.add(name, [row])
        slow = [value_of(draw, one, known) for one in TABLE["span_slowest"].columns]
        known["span_slowest"] = store.add("span_slowest", [slow])
        store.add("span_run", [[value_of(draw, one, known) for one in TABLE["span_run"].columns]])
    at = TABLE["span_slowest"].names.index("duration_ns")
    with store.transaction():
        store.add("span_slowest", [[*slow[:at], 10**9 + n, *slow[at + 1 :]] for n in range(9)])
    assert store.connection.execute("SELECT count(*) FROM span_run").fetchone() == (0,)
    store.close()
    read_profile("a.qprof")


def change(path: str, sql: str) -> None:
    store = sqlite3.connect(path)
    store.execute(sql)
    store.commit()
    store.close()


def test_processes_that_are_given_twice(queryprof: Run) -> None:
    """They are added twice, and one line says so. This includes an earlier merge."""
    Path("day").mkdir()
    processes("day/a.qprof", 1)
    processes("day/b.qprof", 1, first=1)
    assert queryprof("merge", "day/all.qprof", "day").stderr == ""
    for inputs, line, calls in (
        (("day/a.qprof", "day/a.qprof"), "1 process is in several traces and is", 4),
        (("day",), "2 processes are in several traces and are", 8),
    ):
        Path("c.qprof").unlink(missing_ok=True)
        result = queryprof("merge", "c.qprof", *inputs)
        assert result.returncode == 0
        assert result.stderr == f"queryprof: {line} counted once per trace\n"
        assert overview_of(read_profile("c.qprof")).calls == calls
