"""Windows of one process are merged without counting anything twice."""

from __future__ import annotations

import json

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.fleet.flat import host_windows
from queryprof.fleet.footer import Lost, merge_lost
from queryprof.fleet.schema import FLEET_TABLE
from queryprof.model import Thread

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("is_first", [True, False])
def test_counters_without_calls_are_no_shortest_call(is_first: bool) -> None:
    """The thread has only SQLite's counters of earlier calls."""
    calls = aggregate("SELECT 1", ns=50)
    counters = aggregate("SELECT 1", ns=1)._replace(
        thread=Thread(1, "another"), count=0, total_ns=0, self_ns=0, min_ns=0, max_ns=0
    )
    both = (counters, calls) if is_first else (calls, counters)
    (window,) = host_windows(profile_of(*both))
    (row,) = window.tables["aggregate"]
    names = FLEET_TABLE["aggregate"].names
    assert dict(zip(names, row, strict=False))["min_ns"] == 50


def test_windows_that_a_process_has_lost_count_once() -> None:
    """Each file of a process has the total number lost so far."""
    one, other = ("h", 1, 10), ("h", 2, 20)
    found = merge_lost([Lost({one: 2}, 1), Lost({one: 5, other: 1}, 2), Lost({one: 5})])
    assert found == Lost({one: 5, other: 1}, 3)


def test_windows_inside_of_a_longer_one_all_overlap_it() -> None:
    from queryprof.fleet.store import count_nested_windows

    def window(start: int, end: int) -> tuple[str, str]:
        return "shop", json.dumps(["h", 1, 0, start, end])

    assert count_nested_windows([window(0, 100), window(10, 20), window(30, 40)]) == 2
    assert count_nested_windows([window(0, 100), window(100, 120)]) == 0
    assert count_nested_windows([window(0, 100), window(0, 60), window(0, 100)]) == 2


def test_a_call_across_the_border_of_windows_is_no_overlap() -> None:
    """A window ends with the call that closes it, which may end after the next one has begun."""
    from queryprof.fleet.store import count_nested_windows

    windows = [("shop", json.dumps(["h", 1, 0, at, at + 101])) for at in range(0, 500, 100)]
    assert count_nested_windows(windows) == 0
