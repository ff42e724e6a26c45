"""Annotations of a pull request."""

from __future__ import annotations

import pytest

from queryprof.analysis.call_sites import CallSite
from queryprof.comparing.comparison_result import PlanChange, SiteChange, StatementChange
from queryprof.model import Frame
from queryprof.report.comparison.github import comparison_github
from queryprof.report.places import Places

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("line", "place"), [(7, "file=app.py,line=7,"), (0, "file=app.py,")])
def test_an_unknown_line_is_left_out(line: int, place: str) -> None:
    site = SiteChange(CallSite(Frame("work", "app.py", line)), 1, 2)
    change = StatementChange("SELECT 1", "new", (), (site,), PlanChange((), ()))
    text = comparison_github([change], Places())
    assert text.startswith(f"::error {place}title=queryprof::")
