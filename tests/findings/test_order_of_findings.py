"""The order of findings of one severity."""

from __future__ import annotations

import pytest

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.finding import UNKNOWN_FAULT, Finding, Severity, importance_key

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("known_ns", "is_first"), [(24, False), (26, True)])
def test_a_small_known_gain_does_not_hide_where_the_time_goes(
    known_ns: int, is_first: bool
) -> None:
    """The time of a statement without a known cause counts as a quarter of a gain."""
    site = CallSite(None, ())
    known = Finding("full_scan", Severity.LOW, 0.1, known_ns, "a", site, None, (), "Do it.")
    unknown = Finding("heavy_query", Severity.LOW, 0.9, 100, "b", site, None, (), UNKNOWN_FAULT)
    assert (min(unknown, known, key=importance_key) is known) == is_first
