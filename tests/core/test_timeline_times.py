"""A call's time belongs to the intervals in which it ran."""

from __future__ import annotations

import sqlite3
import time

import queryprof
from queryprof.analysis.timeline import timeline_of

LONG = (
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) SELECT {} FROM c"
)


def busiest(recording: queryprof.Recording) -> float:
    return max(moment.busy for moment in timeline_of(recording.profile, 512).moments)


def test_one_thread_is_at_most_busy_all_the_time() -> None:
    """This includes a statement that takes longer than an interval, and the fetches of many
    rows.
    """
    db = sqlite3.connect(":memory:")
    with queryprof.profile() as recording:
        started = time.perf_counter()
        rows = 0
        while time.perf_counter() - started < 1.0:  # several intervals of 134 ms
            db.execute(LONG.format("count(*)"), (400_000,)).fetchall()
            rows += len(list(db.execute(LONG.format("n"), (100_000,))))
    db.close()
    profile = recording.profile
    total_ns = sum(interval.self_ns for interval in profile.timeline)

    assert rows
    assert total_ns == sum(a.self_ns for a in profile.aggregates)
    # Another clock ends the interval.
    assert busiest(recording) <= 1.1
    assert len([one for one in profile.timeline if one.self_ns]) >= 4


def test_the_last_of_many_rows_may_take_longest() -> None:
    """It belongs to the intervals in which it was fetched."""
    db = sqlite3.connect(":memory:")
    db.create_function("wait", 1, lambda n: time.sleep(1.2) if n == 1000 else n)
    with queryprof.profile() as recording:
        assert len(list(db.execute(LONG.format("wait(n)"), (1000,)))) == 1000
    db.close()
    assert busiest(recording) <= 1.1
