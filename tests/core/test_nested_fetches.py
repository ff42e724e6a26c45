"""What a fetch does in other statements is their time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

import queryprof

pytestmark = pytest.mark.once

SLEEP_S = 0.05


def test_a_statement_inside_of_a_fetch_has_its_own_time() -> None:
    """The second row comes from a function that asks another connection."""
    with (
        closing(sqlite3.connect(":memory:")) as outer,
        closing(sqlite3.connect(":memory:")) as inner,
    ):
        inner.create_function("sleep", 1, time.sleep)
        outer.create_function(
            "ask", 0, lambda: inner.execute("SELECT sleep(?)", (SLEEP_S,)).fetchone()[0]
        )
        with queryprof.profile() as p:
            rows = outer.execute("SELECT 'first' UNION ALL SELECT ask()")
            rows.fetchall()
    fetches = [
        one
        for one in p.profile.aggregates
        if "UNION" in one.statement and one.operation == "fetchall"
    ]
    assert sum(one.total_ns for one in fetches) >= SLEEP_S * 1e9
    of_all = sum(one.self_ns for one in p.profile.aggregates)
    slept = [one for one in p.profile.aggregates if "sleep" in one.statement]
    assert sum(one.self_ns for one in slept) >= SLEEP_S * 1e9
    assert sum(one.self_ns for one in fetches) <= of_all - SLEEP_S * 1e9
    assert all(one.self_ns <= one.total_ns - SLEEP_S * 1e9 for one in fetches)
