"""The vital few: the smallest set of (statement, call site) that makes up most of the database
time (the Pareto principle, after J. M. Juran).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, call_site, find_helpers
from queryprof.analysis.totals import Totals, add_up, group_by
from queryprof.model import Aggregate, Frame, Profile

VITAL_SHARE = 0.8

SORT_KEYS: dict[str, Callable[[Totals], float]] = {
    "total": lambda totals: totals.self_ns,
    "count": lambda totals: totals.executions,
    "max": lambda totals: totals.max_ns or 0,
    "p99": lambda totals: totals.p99_ns or 0,
    "vmsteps": lambda totals: totals.vm_steps_sum,
}
"""What a ranking can be by; largest first."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One statement from one call site.

    Attributes:
        rank: from 1.
        share, cumulative_share: of the database time (0 to 1); the latter with all ranks before.
        callers: the most expensive call paths behind the call site, at most five.
    """

    rank: int
    statement: str
    site: CallSite
    totals: Totals
    share: float
    cumulative_share: float
    callers: tuple[tuple[Frame, int], ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """All bottlenecks, most expensive first; the first `vital` of them are the vital few."""

    bottlenecks: tuple[Bottleneck, ...]
    vital: int
    database_ns: int

    @property
    def vital_few(self) -> Sequence[Bottleneck]:
        return self.bottlenecks[: self.vital]


def rank_bottlenecks(profile: Profile, sort: str = "total") -> Ranking:
    """Ranks (statement, call site) by the sort key; the vital few are by time in any case."""
    helpers = find_helpers(profile.aggregates)
    groups = group_by(profile.aggregates, _key(helpers))
    database_ns = sum(a.self_ns for a in profile.aggregates)
    summed = [(statement, members, add_up(members)) for (statement, _), members in groups.items()]
    summed.sort(key=lambda item: (-SORT_KEYS[sort](item[2]), item[0], _place(item[1])))
    bottlenecks = []
    before_ns = 0
    for rank, (statement, members, totals) in enumerate(summed, 1):
        before_ns += totals.self_ns
        most = max(members, key=lambda a: a.self_ns)
        bottlenecks.append(
            Bottleneck(
                rank=rank,
                statement=statement,
                site=call_site(most.path, helpers),
                totals=totals,
                share=totals.self_ns / database_ns if database_ns else 0.0,
                cumulative_share=before_ns / database_ns if database_ns else 0.0,
                callers=_callers(members, helpers),
            )
        )
    vital = next(
        (b.rank for b in bottlenecks if b.cumulative_share >= VITAL_SHARE), len(bottlenecks)
    )
    return Ranking(tuple(bottlenecks), vital, database_ns)


Place = tuple[str, str, int]


def _key(
    helpers: frozenset[tuple[str, str]],
) -> Callable[[Aggregate], tuple[str, Place | None]]:
    def key(aggregate: Aggregate) -> tuple[str, Place | None]:
        frame = call_site(aggregate.path, helpers).frame
        place = (frame.file, frame.function, frame.line) if frame else None
        return aggregate.statement, place

    return key


def _place(members: list[Aggregate]) -> str:
    return str(members[0].path[:1])


def _callers(
    members: list[Aggregate], helpers: frozenset[tuple[str, str]]
) -> tuple[tuple[Frame, int], ...]:
    """The callers of the call site with their time, most expensive first."""
    spent: dict[Frame, int] = {}
    for aggregate in members:
        callers = call_site(aggregate.path, helpers).callers
        if callers:
            spent[callers[0]] = spent.get(callers[0], 0) + aggregate.self_ns
    ranked = sorted(spent.items(), key=lambda item: (-item[1], item[0].file, item[0].line))
    return tuple(ranked[:5])
