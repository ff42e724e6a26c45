"""Spans with their queries, and the queries that repeat within a span."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.summary import Summary, summarize_durations
from queryprof.model import Profile, Repeat, Span


@dataclass(frozen=True, slots=True)
class RepeatSummary:
    """A statement that one call site repeats within a span, usually in a loop. `most` is the
    largest number of executions in one span.
    """

    span: str
    statement: str
    site: CallSite
    spans: int
    executions: int
    most: int

    @property
    def each(self) -> float:
        """The mean number of executions per span."""
        return self.executions / self.spans


@dataclass(frozen=True, slots=True)
class SpanSummary:
    """All spans with the same name.

    Attributes:
        database_share: database time divided by the spans' wall time; can exceed 1 with threads.
        cpu_ns: the mean over the spans with a known CPU time; None if no span has one.
        queries: the distribution of the number of queries per span. Its `_ns` fields hold counts.
    """

    span: Span
    wall: Summary
    queries: Summary
    database_share: float
    cpu_ns: float | None
    repeats: tuple[RepeatSummary, ...]


def find_spans(profile: Profile, helpers: frozenset[Function]) -> tuple[SpanSummary, ...]:
    """Return the profile's spans by wall time, longest first."""

    def repeat(span: Span, found: Repeat) -> RepeatSummary:
        site = call_site(found.path, helpers)
        return RepeatSummary(
            span.name, found.statement, site, found.spans, found.executions, found.most
        )

    return tuple(
        SpanSummary(
            span=span,
            wall=summarize_durations(span.durations),
            queries=summarize_durations(span.queries),
            database_share=(
                span.database_ns / span.durations.total_ns if span.durations.total_ns else 0.0
            ),
            cpu_ns=span.cpu_ns / span.cpu_count if span.cpu_count else None,
            repeats=tuple(repeat(span, found) for found in span.repeats),
        )
        for span in sorted(profile.spans, key=lambda s: (-s.durations.total_ns, s.name))
    )


def find_repeats(spans: Iterable[SpanSummary]) -> tuple[RepeatSummary, ...]:
    """Return the repeated queries of all spans, most executions first."""
    found = [repeat for span in spans for repeat in span.repeats]
    return tuple(sorted(found, key=lambda r: (-r.executions, r.span, r.statement)))


def spans_are_sequential(profile: Profile) -> bool:
    """Return whether spans run one after another: all spans together take less time than the run,
    and the slowest spans do not overlap.
    """
    spans_ns = sum(one.durations.total_ns for one in profile.spans)
    if spans_ns >= max((one.wall_ns for one in profile.processes), default=0):
        return False
    slow = sorted((one.started_unix_ns, one.duration_ns) for one in profile.slow_spans)
    return len(slow) > 1 and all(a + ns <= b for (a, ns), (b, _) in pairwise(slow))
