"""A write on a busy machine is not slower with an index that it does not maintain."""

from __future__ import annotations

import pytest

from queryprof.planner.judging import AFTER, Measurement
from queryprof.proof.index_search import ChangeSearch
from queryprof.proof.times import StatementTimes
from queryprof.proof.workload import RecordedStatement

pytestmark = pytest.mark.once

UPDATE = "UPDATE orders SET status = ?"


def measured(ns: float, vm_steps: int | None) -> Measurement:
    return Measurement(ns, vm_steps, None, 0, "")


@pytest.mark.parametrize(
    ("writes", "vm_steps", "cost_ns"),
    [(True, 7, 100), (True, 8, 1000), (True, None, 1000), (False, 7, 1000)],
)
def test_equal_steps_take_equal_time(
    monkeypatch: pytest.MonkeyPatch, writes: bool, vm_steps: int | None, cost_ns: float
) -> None:
    query = RecordedStatement(UPDATE, 100, 1, writes)
    search = ChangeSearch.__new__(ChangeSearch)
    search.base = {UPDATE: (measured(100, 7),)}
    search.times = StatementTimes([query], {UPDATE: 100})
    monkeypatch.setattr(search, "_measured_samples", lambda *_: (measured(1000, vm_steps),))
    assert search.cost(query, AFTER) == cost_ns
