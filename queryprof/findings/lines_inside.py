"""Lines that call other lines: count the time of each statement in one line only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from queryprof.analysis.call_sites import Place, place_of
from queryprof.findings.groups import StatementGroup

ALL = 0.999
"""A larger share counts as all of a statement's calls; the rest is rounding."""


def subtract_inner_line_times(groups: Iterable[StatementGroup]) -> None:
    """Subtract the time of inner lines from the outer lines that call them.

    The time of a line includes everything that it calls. A line may call a function of the program
    whose own line executes another query. The time of that query then belongs to the inner line.
    """
    timed: dict[Place, list[StatementGroup]] = defaultdict(list)
    all_groups = tuple(groups)
    for group in all_groups:
        place = place_of(group.site.frame)
        if place and group.line_ns is not None and group.shares_line:
            timed[place].append(group)
    if not timed:
        return
    deepest_first = sorted(all_groups, key=lambda one: -max(len(each.path) for each in one.members))
    for group in deepest_first:
        own = place_of(group.site.frame)
        calls = sum(one.count for one in group.members)
        callers = [
            (outer, one.count / calls)
            for one in group.members
            if own and calls
            for place in timed.keys() & ({place_of(frame) for frame in one.path} - {own})
            for outer in timed[place]
        ]
        shares: dict[int, float] = defaultdict(float)
        for outer, share in callers:
            shares[id(outer)] += share
            if shares[id(outer)] > ALL:
                group.most_line_ns = min(group.most_line_ns, outer.total_line_ns)
        for outer, share in callers:
            outer.inside_ns += group.cost_ns * share
