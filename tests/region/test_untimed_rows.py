"""Rows of a killed process that were not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from queryprof.region.pending import _PendingCalls
from queryprof.region.region import Region

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("timed", "total_ns"), [(10, 900), (100, 90), (0, 90)])
def test_rows_that_were_not_timed_take_as_long_as_the_others(timed: int, total_ns: int) -> None:
    """The process was killed, and reading the clock is expensive there."""
    rows: list[Any] = []
    settling = _PendingCalls(cast(Region, SimpleNamespace(ns=lambda ticks: ticks)), rows)
    call = {
        "pending_calls": 100,
        "pending_timed_calls": timed,
        "pending_ticks": 90,
        "pending_stage": 0,
        "pending_operation": 3,
        "pending_errors": 0,
        "pending_rows": 100,
        "pending_nested_ticks": 0,
        "pending_min_ticks": 8,
        "pending_max_ticks": 10,
    }
    assert settling._add_ended_rows((1, 2, 3, 4, 0), call) == total_ns
    (row,) = rows
    assert (row.count, row.total_ns, row.self_ns, row.max_ns) == (100, total_ns, total_ns, 10)
