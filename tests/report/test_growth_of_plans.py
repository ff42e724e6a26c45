"""The forecast of a workload whose plan changes with the data."""

from __future__ import annotations

from io import StringIO

import pytest

from queryprof.comparing.baseline_figures import StatementFigures
from queryprof.growth.composed import ComposedRuns
from queryprof.growth.growths import Run
from queryprof.report.terminal.growth import print_growth

pytestmark = pytest.mark.once

SCAN, SEARCH = ((" SCAN t",),), (("SEARCH t USING INDEX i",),)


def test_a_change_of_plan_is_shown_where_it_happens() -> None:
    runs = tuple(
        Run(
            size,
            {"t": 10 * size},
            frozenset({"t"} if size > 1 else ()),
            {
                "SELECT a FROM t": StatementFigures(
                    1, 1, 100 * size, 0, plans=SCAN if size < 4 else SEARCH
                )
            },
        )
        for size in (1, 2, 4, 8)
    )
    out = StringIO()
    print_growth(ComposedRuns(runs, (), ("SELECT 2",)), {"SELECT a FROM t": 10**9}, {}, 3, out, 160)
    text = out.getvalue()
    assert text.count("its plan changes") == 1
    assert "with 1/2 of the rows its plan changes to SEARCH t USING INDEX i" in text
    assert "VM steps grow in proportion to t: 100, 200, 400, 800" in text
    assert "100 s" in text
    assert "Not measured: 1 statement (SELECT 2); 3 replayed executions failed" in text
