"""The vital few: the smallest set of (statement, call site) pairs that takes most of the database
time (the Pareto principle, after J. M. Juran).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from queryprof.analysis.call_sites import CallSite, Place, Sites
from queryprof.analysis.files import FileWorkSums
from queryprof.analysis.marks import Mark, mark_of
from queryprof.analysis.plans import Steps, plans_by_statement
from queryprof.analysis.totals import SORT_KEYS, Totals, TotalsCache, self_ns_of
from queryprof.model import Aggregate, Frame, Profile

VITAL_SHARE = 0.8


class Bottleneck(NamedTuple):
    """The figures of one statement at one call site.

    Attributes:
        rank: the position in the ranking, from 1.
        share: this pair's share of the database time (0 to 1). cumulative_share: the share of this
            and all higher ranks.
        callers: up to five callers of the call site, each with its time in ns, most expensive
            first.
        plans: the query plans of the statement, from all call sites; empty if unknown.
        files: SQLite's reads, writes, syncs and lock waits; None if none were recorded.
    """

    rank: int
    statement: str
    site: CallSite
    totals: Totals
    share: float
    cumulative_share: float
    callers: tuple[tuple[Frame, int], ...]
    plans: tuple[Steps, ...]
    files: FileWorkSums | None

    @property
    def mark(self) -> Mark | None:
        """The statement's likeliest problem (see `analysis.marks`), or None."""
        return mark_of(self.plans, self.totals, self.share)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The bottlenecks, most expensive first.

    Attributes:
        bottlenecks: the first `top` bottlenecks.
        count: the number of all bottlenecks.
        vital: how many bottlenecks together make up at least VITAL_SHARE of the time.
        vital_share: the share that these bottlenecks make up (0 to 1).
    """

    bottlenecks: tuple[Bottleneck, ...]
    count: int
    vital: int
    vital_share: float
    database_ns: int


def rank_bottlenecks(
    profile: Profile,
    sites: Sites,
    sums: TotalsCache,
    by_site: Mapping[tuple[str, Place], list[Aggregate]],
    spent_ns: Mapping[tuple[str, Place], int],
    files: Mapping[tuple[str, Place], FileWorkSums],
    sort: str = "time",
    top: int | None = None,
) -> Ranking:
    """Rank (statement, call site) pairs by time, and describe the first `top`, or all if None.

    Args:
        by_site: the aggregates of each pair.
        spent_ns: the time of each pair.
        files: the file work of each pair.
    """
    plans = plans_by_statement(profile.plans)
    database_ns = self_ns_of(profile.aggregates)
    keys = list(spent_ns)
    if sort != "time":
        measure = SORT_KEYS[sort]
        keys.sort(key=lambda key: -measure(by_site[key]))
    bottlenecks = []
    before_ns = 0
    for rank, key in enumerate(keys[:top], 1):
        statement, members = key[0], by_site[key]
        totals = sums.totals_of(members)
        before_ns += totals.self_ns
        most = max(members, key=lambda a: a.self_ns)
        bottlenecks.append(
            Bottleneck(
                rank=rank,
                statement=statement,
                site=sites.site(most.path),
                totals=totals,
                share=totals.self_ns / database_ns if database_ns else 0.0,
                cumulative_share=before_ns / database_ns if database_ns else 0.0,
                callers=_callers_by_time(members, sites),
                plans=plans.get(statement, ()),
                files=files.get(key),
            )
        )
    spent = list(spent_ns.values())
    vital = _count_vital(spent, database_ns)
    vital_share = sum(spent[:vital]) / database_ns if database_ns else 0.0
    return Ranking(tuple(bottlenecks), len(keys), vital, vital_share, database_ns)


def _count_vital(spent_ns: list[int], database_ns: int) -> int:
    """Return how many of the largest times add up to VITAL_SHARE of the database time."""
    reached = 0
    for rank, ns in enumerate(spent_ns, 1):
        reached += ns
        if reached >= VITAL_SHARE * database_ns:
            return rank
    return len(spent_ns)


def calls_by_statement_site(
    profile: Profile, sites: Sites
) -> Mapping[tuple[str, Place], list[Aggregate]]:
    """Group the aggregates by statement and call site. Groups without calls are omitted."""
    groups: dict[tuple[str, Place], list[Aggregate]] = {}
    empty = []
    for aggregate in profile.aggregates:
        key = (aggregate.statement, sites.place(aggregate.path))
        known = groups.get(key)
        if known is None:
            groups[key] = [aggregate]
        else:
            known.append(aggregate)
        if not aggregate.count:
            empty.append(key)
    for key in empty:
        if key in groups and not any(a.count for a in groups[key]):
            del groups[key]
    return groups


def _callers_by_time(members: list[Aggregate], sites: Sites) -> tuple[tuple[Frame, int], ...]:
    """Return up to five callers of the call site with their times, most expensive first."""
    spent: dict[Frame, int] = {}
    for aggregate in members:
        callers = sites.site(aggregate.path).callers
        if callers:
            spent[callers[0]] = spent.get(callers[0], 0) + aggregate.self_ns
    ranked = sorted(spent.items(), key=lambda item: (-item[1], item[0].file, item[0].line))
    return tuple(ranked[:5])
