"""Findings of a request: a query in a loop is reported once, whether slow or fast."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of_request
from queryprof.findings.source_lines import NO_LINES, NO_TASKS

pytestmark = pytest.mark.once

LOOKUP = "SELECT name FROM author WHERE id = ?"
BIG, TINY = 200_000_000, 20_000


@pytest.mark.parametrize(("ns", "has_gain"), [(BIG, True), (TINY, False)], ids=["slow", "fast"])
def test_a_query_in_a_loop_is_there_once(ns: int, has_gain: bool) -> None:
    sources: Any = SimpleNamespace(
        loop_at=lambda frame, _: replace(frame, line=1),
        makes_tasks=NO_TASKS,
        needs_previous_row=NO_LINES.needs_previous_row,
        attributes_appended_to=NO_LINES.attributes_appended_to,
    )
    loop = aggregate(LOOKUP, (MAIN,), ns=ns, count=20)
    found = findings_of_request(Report(profile_of(loop)), sources)
    assert [(one.category, bool(one.gain_ns)) for one in found] == [("n_plus_one", has_gain)]
