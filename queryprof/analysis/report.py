"""The report on a profile: all figures and findings, for every output format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from queryprof.analysis.bottlenecks import Ranking, calls_by_statement_site, rank_bottlenecks
from queryprof.analysis.call_sites import Function, Place, Sites, find_helpers
from queryprof.analysis.errors import SiteErrors, errors_by_site
from queryprof.analysis.files import FileWorkSums, file_work_by_site
from queryprof.analysis.handoffs import HandoffSummary, find_handoffs
from queryprof.analysis.library_frames import is_library_statement
from queryprof.analysis.lock_holders import merge_hold_parts, unique_events
from queryprof.analysis.loops import LoopSummary, find_loops
from queryprof.analysis.overview import Overview, overview_of
from queryprof.analysis.spans import RepeatSummary, SpanSummary, find_repeats, find_spans
from queryprof.analysis.threads import usage_by_name
from queryprof.analysis.totals import TotalsCache, self_ns_of
from queryprof.analysis.views import View, view_by
from queryprof.model import Aggregate, LockEvent, LockHold, Profile, SlowSpan, ThreadUsage
from queryprof.operations import OWN_NOTE

TOP_SHOWN = 10
"""The number of rows that a report shows by default."""


@dataclass(frozen=True)
class Report:
    """The figures and findings of a profile. Each part is computed when first used, and then kept.

    Attributes:
        profile: the recorded data. Output formats read plans, exemplars and the timeline directly
            from the profile.
        sort: the order of the ranking and the views; a key of `analysis.totals.SORT_KEYS`.
        top: the maximum number of rows in the ranking, in each view and in each list; None for all.
    """

    profile: Profile
    sort: str = "time"
    top: int | None = None
    _sums: TotalsCache = field(default_factory=TotalsCache, init=False, repr=False, compare=False)
    _views: dict[str, View] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def helpers(self) -> frozenset[Function]:
        """The program's database helpers, which call sites skip."""
        return find_helpers(self.profile.aggregates)

    @cached_property
    def overview(self) -> Overview:
        return overview_of(self.profile)

    @cached_property
    def sites(self) -> Sites:
        return Sites(self.helpers)

    @cached_property
    def by_site(self) -> Mapping[tuple[str, Place], list[Aggregate]]:
        """The aggregates by statement and call site."""
        return calls_by_statement_site(self.profile, self.sites)

    @cached_property
    def spent_ns(self) -> Mapping[tuple[str, Place], int]:
        """The time of each statement at each call site, longest first."""
        found = [(key, self_ns_of(group)) for key, group in self.by_site.items()]
        return dict(sorted(found, key=itemgetter(1), reverse=True))

    @cached_property
    def files(self) -> Mapping[tuple[str, Place], FileWorkSums]:
        """The file work of each statement at each call site."""
        return file_work_by_site(self.profile, self.sites)

    @cached_property
    def ranking(self) -> Ranking:
        return rank_bottlenecks(
            self.profile,
            self.sites,
            self._sums,
            self.by_site,
            self.spent_ns,
            self.files,
            self.sort,
            self.top,
        )

    def view(self, dimension: str) -> View:
        """Return the totals by a dimension of `analysis.views.DIMENSIONS`."""
        if dimension not in self._views:
            self._views[dimension] = view_by(
                self.profile, self.sites, self._sums, dimension, self.sort, self.top
            )
        return self._views[dimension]

    @cached_property
    def operations(self) -> View:
        """All operations, by total time."""
        return view_by(self.profile, self.sites, self._sums, "operation")

    @cached_property
    def loops(self) -> tuple[LoopSummary, ...]:
        return find_loops(self.profile, self.helpers)

    @cached_property
    def spans(self) -> tuple[SpanSummary, ...]:
        return find_spans(self.profile, self.helpers)

    @cached_property
    def slowest_spans(self) -> tuple[SlowSpan, ...]:
        """The slowest recorded spans of all names, slowest first."""
        return tuple(sorted(self.profile.slow_spans, key=lambda one: -one.duration_ns))

    @cached_property
    def own_statements(self) -> frozenset[str]:
        """Statements that a library executes for its own purposes, as their notes or stacks
        show.
        """
        noted = [statement for statement, note in self.profile.notes.items() if note == OWN_NOTE]
        samples = [one for one in self.profile.stack_samples if is_library_statement(one.stack)]
        return frozenset((*noted, *(one.statement for one in samples)))

    @cached_property
    def notes(self) -> Mapping[str, str]:
        """The note on each statement: a library's label, or OWN_NOTE if a library executes the
        statement for its own purposes.
        """
        return {**self.profile.notes, **dict.fromkeys(self.own_statements, OWN_NOTE)}

    @cached_property
    def repeats(self) -> tuple[RepeatSummary, ...]:
        found = find_repeats(self.spans)
        return tuple(one for one in found if one.statement not in self.own_statements)

    @cached_property
    def handoffs(self) -> tuple[HandoffSummary, ...]:
        return find_handoffs(self.profile, self.helpers)

    @cached_property
    def errors(self) -> tuple[SiteErrors, ...]:
        return errors_by_site(self.profile, self.sites)

    @cached_property
    def lock_holds(self) -> tuple[LockHold, ...]:
        return merge_hold_parts(self.profile.lock_holds)

    @cached_property
    def lock_events(self) -> tuple[LockEvent, ...]:
        """The longest holds and waits, longest first."""
        events = unique_events(self.profile.lock_events)
        return tuple(sorted(events, key=lambda event: -event.duration_ns))

    @cached_property
    def threads(self) -> Mapping[str, ThreadUsage]:
        """Each thread's use of CPU time and files, by the thread's name in the report."""
        return usage_by_name(self.profile)
