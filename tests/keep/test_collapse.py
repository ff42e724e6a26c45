"""Merges of random traces, made from the declarations of the tables: what is added up is the same
in any order and grouping, collapsed or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, Run
from queryprof.analysis.overview import overview_of
from queryprof.collect.collapse import MOST_LISTED, WITH_PROCESS
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.trace.declaration import FIRST, KEY, LAST, LEAST, LONGEST, MOST, SUM, Column, Table
from queryprof.trace.opening import opened_file
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE, TABLES

pytestmark = pytest.mark.once

Rows = dict[str, dict[tuple[object, ...], dict[str, Any]]]

FORMS = {"argv": '["python"]', "unmeasured": None}
HOUR_NS = 3600 * 10**9


def value_of(draw: Random, column: Column, known: dict[str, list[int]]) -> object:
    """A value that a recording could have."""
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


def content_of(path: str) -> Rows:
    """What a trace adds up, by the texts of its keys and by the threads' names."""
    found: Rows = {}
    with opened_file(path) as trace:
        known: dict[str, Any] = {}
        for table in TABLES:
            if table.name == "setting":
                continue
            rows = list(trace.resolved(table.name, known))
            if table.has_id:
                keys = len(table.key)
                names: dict[Any, Any] = {row[0]: (table.name, *row[1 : keys + 1]) for row in rows}
                if table.name == "process":
                    names = dict.fromkeys((0, *names), "a process")
                known[table.name] = {None: None, **names}
                rows = [row[1:] for row in rows]
            is_summed = (
                table.key and not table.kept and table.name not in (*WITH_PROCESS, "process")
            )
            if is_summed and not table.width:
                found[table.name] = folded(table, rows)
    return found


def folded(table: Table, rows: Iterable[tuple[Any, ...]]) -> dict[Any, dict[str, Any]]:
    """Rows of one key as one, by the meaning of each column."""
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
    """A column that is added to a table is in this test without a line."""
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
    with opened_file("collapsed.qprof") as trace:
        threads = [
            name for process, name in trace.rows("thread", ("process_id", "name")) if not process
        ]
    assert len(threads) == len(set(threads))


def test_every_role_has_its_fold() -> None:
    roles = {column.role for table in TABLES for column in table.columns}
    assert roles <= JOINS.keys()


def processes(path: str, number: int, first: int = 0, clean: int = 1) -> None:
    """A trace of so many processes of ten seconds, a second apart, each with a call."""
    store = TraceStore(path)
    columns = TABLE["process"].columns
    values = {column.name: value_of(Random(1), column, {}) for column in columns}
    with store.transaction():
        statement, span = store.id("statement", "SELECT 1", None, "sqlite"), store.id("span", "")
        path_id = store.id("stack", "")
        for at in range(first, first + number):
            start = 10**18 + at * 10**9
            own = {"pid": at + 1, "start_unix_ns": start, "end_unix_ns": start + 10 * 10**9}
            row = {**values, **own, "clean_end": clean, "folded_calls": 1}
            (process,) = store.add("process", [[row[name] for name in TABLE["process"].names]])
            thread = store.id("thread", process, "MainThread")
            key = (statement, path_id, span, thread, "execute")
            count = len(TABLE["aggregate"].values)
            store.add("aggregate", [(*key, 1, 0, 1, *[1] * (count - 3))])
    store.close()


@pytest.mark.parametrize(("number", "more"), [(MOST_LISTED, 0), (MOST_LISTED + 5, 5)])
def test_processes_beyond_the_listed_ones_are_in_all_sums(
    queryprof: Run, number: int, more: int
) -> None:
    """Also when the collapsed trace is merged again, with and without --collapse."""
    processes("a.qprof", number)
    processes("b.qprof", 3, first=number, clean=0)
    merge_traces("c.qprof", ["a.qprof"], collapses=True)
    for collapses in (True, False):
        merge_traces("d.qprof", ["c.qprof", "b.qprof"], collapses=collapses)
        profile = read_profile("d.qprof")
        assert (profile.more.count if profile.more else 0) == more
        assert len(profile.processes) == MOST_LISTED + 3  # those that were killed are listed
        found = overview_of(profile)
        assert (found.processes, found.calls) == (number + 3, number + 3)
        assert found.process_ns == (number + 3) * 10 * 10**9
        assert found.run_ns == (number + 2) * 10**9 + 10 * 10**9
        assert sum(one.folded_calls for one in profile.processes) == number + 3
        assert any("more processes ended" in line for line in found.cautions) == bool(more)
    shown = queryprof("report", "d.qprof", "--by", "thread").stdout
    assert "MainThread" in shown


def test_a_trace_that_is_given_twice(queryprof: Run) -> None:
    """It is added twice, and one line names it."""
    processes("a.qprof", 1)
    result = queryprof("merge", "b.qprof", "a.qprof", "a.qprof")
    assert result.returncode == 0
    assert result.stderr.startswith("queryprof: added more than once, as it was given: ")
    assert overview_of(read_profile("b.qprof")).calls == 2
