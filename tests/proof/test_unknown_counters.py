"""The sum of counters is unknown if some executions have none."""

from __future__ import annotations

import pytest

from queryprof.model.advice import Cost
from queryprof.planner.judging import Measurement
from queryprof.proof.costs import is_less_work, mean_cost, total_cost

pytestmark = pytest.mark.once


def test_counters_of_some_parameters_are_none_of_all() -> None:
    """Parameters that took longer than the limit have no counters: the mean of the others would be
    too small.
    """
    known, unknown = Measurement(1.0, 100, 10, 1, "rows"), Measurement(9.0, None, None, 0, "")
    assert total_cost([known, unknown]) == Cost(10.0, None, None)
    assert mean_cost([total_cost([known]), total_cost([unknown])]) == Cost(5.0, None, None)
    assert is_less_work(Cost(1.0, 200.0, 20.0), total_cost([known, unknown])) is None
