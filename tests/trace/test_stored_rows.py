"""Rows that a store adds up, and the intervals of a timeline."""

from __future__ import annotations

import pytest

from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

pytestmark = pytest.mark.once


@pytest.mark.parametrize("counts", [(0, 3), (3, 0)])
def test_the_shortest_call_is_of_rows_that_have_calls(counts: tuple[int, int]) -> None:
    """A row may have only SQLite's counters."""
    store = TraceStore(":memory:")
    names = TABLE["aggregate"].names
    with store.transaction():
        key = {
            "statement_id": store.id("statement", "SELECT 1", None, "sqlite"),
            "path_id": store.id("stack", ""),
            "span_id": store.id("span", ""),
            "thread_id": store.id("thread", 0, "a"),
            "operation": "execute",
        }
        for count in counts:
            row = dict.fromkeys(names, 0) | key | {"count": count, "min_ns": 50 * bool(count)}
            store.add("aggregate", [[row[name] for name in names]])
        found = store.connection.execute("SELECT count, min_ns FROM aggregate").fetchall()
    store.close()
    assert found == [(3, 50)]


@pytest.mark.parametrize("further", range(2044, 2056))
def test_intervals_that_begin_at_any_place_are_few_enough(further: int) -> None:
    """The first one's start is rounded down with each doubling of the width."""
    store = TraceStore(":memory:")
    width, most = 1 << 27, TABLE["timeline"].intervals
    rows = [(3 * width, 1, 2, 3), (further * width, 1, 2, 3)]
    store.add_intervals("timeline", width, rows)
    first, last = store.connection.execute(
        "SELECT min(start_unix_ns), max(start_unix_ns) FROM timeline"
    ).fetchone()
    (wide,) = store.connection.execute("SELECT value FROM setting").fetchone()
    store.close()
    assert (last - first) // wide < most == 512
