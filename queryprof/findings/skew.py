"""Executions that take longer than the others because they return more rows."""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.analysis.call_sites import Place, Sites, place_of
from queryprof.findings.groups import TRIMMED, StatementGroup
from queryprof.model import Exemplar, Profile

SKEWED = 10
"""An execution that returns this many times the rows of the others is not slow by chance."""


def set_skewed_times(groups: Iterable[StatementGroup], profile: Profile, sites: Sites) -> None:
    """Set skewed_ns: how much longer a line takes for a statement's longest execution, if the rows
    of that execution explain the difference.

    The timed passes (runs) of a line exclude the longest pass, because it may have been
    interrupted. But the longest pass must count if its execution returns most of the rows.
    """
    longest: dict[tuple[str, Place], Exemplar] = {}
    for one in profile.exemplars:
        key = one.statement, sites.place(one.path)
        known = longest.setdefault(key, one)
        longest[key] = max(known, one, key=lambda each: each.duration_ns)
    for group in groups:
        found = longest.get((group.statement, place_of(group.site.frame)))
        others = group.totals.executions - 1
        if found is None or others < 1 or group.totals.has_uncounted_rows:
            continue
        rows = (group.totals.rows - found.rows) / others
        is_much = found.duration_ns > TRIMMED * group.self_ns
        if not is_much or found.rows < SKEWED * max(1.0, rows):
            continue
        left_out_ns = max((one.left_out_ns for one in group.line_times), default=0)
        line_ns, each_ns = group.line_ns, group.totals.p50_ns or 0
        if line_ns is not None and left_out_ns >= found.duration_ns:
            group.skewed_ns = left_out_ns - line_ns
        else:
            group.skewed_ns = max(0, found.duration_ns - each_ns)
