"""Queries that scan a table and block an event loop."""

from __future__ import annotations

import pytest
from analysis.by_hand import MAIN

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.choices import choose_between_findings
from queryprof.findings.finding import Finding, Severity

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("code", "doubt", "first"),
    [
        ("CREATE INDEX i", "", "full_scan"),
        ("", "", "blocked_loop"),
        ("CREATE INDEX i", "?", "blocked_loop"),
    ],
)
def test_the_loop_comes_first_if_no_index_certainly_helps(
    code: str, doubt: str, first: str
) -> None:
    scan, blocked = (
        Finding(
            *(name, Severity.LOW, 0.1, 100, "SELECT 1", CallSite(MAIN), None, (name,), "fix"),
            *(sql, why),
        )
        for name, sql, why in (("full_scan", code, doubt), ("blocked_loop", "", "?"))
    )
    found = choose_between_findings(scan, blocked)
    assert found.category == first
    assert set(found.evidence) == {"full_scan", "blocked_loop"}
