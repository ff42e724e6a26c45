"""The exceptions of driver calls, by statement and call site."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, Place, Sites
from queryprof.model import Profile


@dataclass(frozen=True, slots=True)
class SiteErrors:
    """How often a statement raised an exception at a call site."""

    exception: str
    statement: str
    site: CallSite
    count: int


def errors_by_site(profile: Profile, sites: Sites) -> tuple[SiteErrors, ...]:
    """Return the exceptions, most frequent first."""
    counts: Counter[tuple[str, str, Place]] = Counter()
    found: dict[tuple[str, str, Place], CallSite] = {}
    for error in profile.errors:
        key = (error.exception, error.statement, sites.place(error.path))
        counts[key] += error.count
        found.setdefault(key, sites.site(error.path))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0][:2], repr(item[0][2])))
    return tuple(
        SiteErrors(exception, statement, found[exception, statement, place], count)
        for (exception, statement, place), count in ranked
    )
