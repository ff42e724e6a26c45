"""Lines that call other lines: count the time of each statement in one line only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from queryprof.analysis.call_sites import Place, place_of
from queryprof.findings.groups import StatementGroup

ALL = 0.999
"""A larger share counts as all of a statement's calls; the rest is rounding."""

MOST = 0.5
"""The time of an outer line is an upper limit for the time of an inner line, if the outer line's
timed passes contain at least this share of the inner executions. Only some passes are timed.
"""


def set_line_waits(groups: Iterable[StatementGroup]) -> None:
    """Set line_waits_ns of each group: the lock waits of all statements that the line executes."""
    waits: dict[Place, tuple[int, int]] = {}
    by_place = [(place, one) for one in groups if (place := place_of(one.site.frame))]
    for place, one in by_place:
        total_ns, longest_ns = waits.get(place, (0, 0))
        files = one.files
        waits[place] = total_ns + files.lock_ns, max(longest_ns, files.max_lock_ns)
    for place, one in by_place:
        one.line_waits_ns = waits[place]


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
    inner = [(group, _callers_of(group, timed)) for group in all_groups]
    inside: dict[int, float] = defaultdict(float)  # executions below each outer line
    for group, callers in inner:
        for outer, share in callers:
            inside[id(outer)] += share * group.totals.statement_executions
    inner.sort(key=lambda one: -max(len(each.path) for each in one[0].members))  # deepest first
    for group, callers in inner:
        shares: dict[int, float] = defaultdict(float)
        for outer, share in callers:
            timed_share = _timed_share(outer, inside[id(outer)])
            shares[id(outer)] += share
            if shares[id(outer)] > ALL and timed_share >= MOST:
                group.most_line_ns = min(group.most_line_ns, outer.total_line_ns)
        for outer, share in callers:
            outer.inside_ns += group.cost_ns * share * _timed_share(outer, inside[id(outer)])


def _callers_of(
    group: StatementGroup, timed: Mapping[Place, Sequence[StatementGroup]]
) -> list[tuple[StatementGroup, float]]:
    """Return the groups whose lines call the group's line, each with its share of the group's
    calls.
    """
    own = place_of(group.site.frame)
    calls = sum(one.count for one in group.members)
    return [
        (outer, one.count / calls)
        for one in group.members
        if own and calls
        for place in timed.keys() & ({place_of(frame) for frame in one.path} - {own})
        for outer in timed[place]
    ]


def _timed_share(outer: StatementGroup, executions: float) -> float:
    """Return the share of the inner executions that the timed passes of an outer line contain. A
    pass of a comprehension contains only its first item.
    """
    in_passes = outer.other_statements_per_pass * outer.totals.statement_executions
    return min(1.0, in_passes / executions) if executions else 1.0
