"""Views: the database time by statement, call site, operation, thread or span."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from queryprof.analysis.call_sites import NO_PLACE, CallSite, Sites
from queryprof.analysis.threads import process_namer, thread_and_process_name
from queryprof.analysis.totals import (
    SORT_KEYS,
    Totals,
    TotalsCache,
    group_aggregates,
    groups_with_calls,
    self_ns_of,
)
from queryprof.model import Aggregate, Profile

TOP_CALLERS = 5


class CallerShare(NamedTuple):
    """The totals of one call site within a row of a view."""

    site: CallSite
    totals: Totals


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One row of a view. `callers` are the row's most expensive call sites, at most five."""

    name: str
    totals: Totals
    share: float
    callers: tuple[CallerShare, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The database time by one dimension: the largest rows, and the number of all rows."""

    dimension: str
    rows: tuple[ViewRow, ...]
    count: int


DIMENSIONS = ("statement", "site", "operation", "thread", "span")


def view_by(
    profile: Profile,
    sites: Sites,
    sums: TotalsCache,
    dimension: str,
    sort: str = "time",
    top: int | None = None,
) -> View:
    """Return the profile's totals by one of DIMENSIONS, sorted by a key of SORT_KEYS. `top` limits
    the rows; None means all.
    """
    names = _row_namer(profile, dimension, sites)
    database_ns = self_ns_of(profile.aggregates)
    measure = SORT_KEYS[sort]
    groups = groups_with_calls(profile.aggregates, names)
    groups.sort(key=lambda item: (-measure(item[1]), str(item[0])))
    rows = []
    for name, members in groups[:top]:
        totals = sums.totals_of(members)
        share = totals.self_ns / database_ns if database_ns else 0.0
        rows.append(ViewRow(str(name), totals, share, _top_callers(members, sites, sums)))
    return View(dimension, tuple(rows), len(groups))


def _top_callers(
    members: list[Aggregate], sites: Sites, sums: TotalsCache
) -> tuple[CallerShare, ...]:
    """Return the call sites that took most time, at most TOP_CALLERS."""
    by_place = group_aggregates(members, lambda a: sites.place(a.path))
    groups = sorted(by_place.items(), key=lambda item: (-self_ns_of(item[1]), item[0] or NO_PLACE))
    return tuple(
        CallerShare(sites.site(max(group, key=lambda a: a.self_ns).path), sums.totals_of(group))
        for _, group in groups[:TOP_CALLERS]
    )


def _row_namer(profile: Profile, dimension: str, sites: Sites) -> Callable[[Aggregate], Hashable]:
    process_of = process_namer(profile)

    def thread(aggregate: Aggregate) -> str:
        return thread_and_process_name(aggregate.thread.name, process_of(aggregate.thread))

    def site(aggregate: Aggregate) -> str:
        file, function, line = sites.place(aggregate.path) or NO_PLACE
        return f"{file}:{line} {function}" if file else "(unknown)"

    names: dict[str, Callable[[Aggregate], Hashable]] = {
        "statement": lambda a: a.statement,
        "site": site,
        "operation": lambda a: a.operation,
        "thread": thread,
        "span": lambda a: a.span or "(no span)",
    }
    return names[dimension]
