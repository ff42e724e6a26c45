"""Plans of many thousand steps, as a stranger's trace may have."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from queryprof.analysis import marks
from queryprof.analysis.marks import CORRELATED, INDEX, SCAN, SORT, marked_step
from queryprof.analysis.plans import plan_signs

pytestmark = pytest.mark.once


@pytest.mark.parametrize("kind", [SCAN, INDEX, SORT, CORRELATED])
def test_each_step_is_read_once(kind: str) -> None:
    """Not once for each other step."""
    steps = tuple(f"{' ' * at}CORRELATED SCALAR SUBQUERY" for at in range(500))
    plan = (*steps, f"{' ' * 501}SCAN t", "USE TEMP B-TREE FOR ORDER BY")
    plan_signs.cache_clear()
    marked_step.cache_clear()
    with patch.object(marks, "plan_signs", wraps=plan_signs) as reads:
        marked_step(plan, kind)
    assert reads.call_count <= len(plan) + 1


def test_the_marked_step() -> None:
    inner = ("CORRELATED SCALAR SUBQUERY", " SEARCH u USING INDEX u_a (a=?)")
    plan = (
        "SCAN t",
        *inner,
        "CORRELATED SCALAR SUBQUERY",
        " SCAN u",
        "USE TEMP B-TREE FOR GROUP BY",
    )
    assert marked_step(plan, SCAN) == 4  # the innermost loop
    assert marked_step(plan, CORRELATED) == 3
    assert marked_step(plan, SORT) == 5
    assert marked_step(plan, INDEX) is None
    assert marked_step(plan[:3], CORRELATED) is None
