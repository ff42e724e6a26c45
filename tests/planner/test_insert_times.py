"""What an insert takes on a copy."""

from __future__ import annotations

import time
from itertools import count

import pytest

from queryprof.planner import judge

pytestmark = pytest.mark.once


@pytest.mark.parametrize("rows", [1, 4])
def test_the_time_is_of_one_row(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """The rows are inserted together, which takes 1,000 ns by this clock."""
    monkeypatch.setattr(judge, "limit_file_size", lambda _: None)  # of this process
    executor = judge.Executor("sqlite3")
    executor.create_empty("copy")
    executor.execute("copy", "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    for number in range(rows):
        executor.execute("copy", f"INSERT INTO t VALUES ({number}, 'x')")
    clock = count(0, 1000)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    found = executor.insert_ns(["copy"], "t", ["a"], ["a", "b"], 3)
    assert found == {"copy": 1000 / rows}
    assert executor.rows("copy", "SELECT count(*) FROM t") == [(rows,)]
    executor._copies["copy"].close()
