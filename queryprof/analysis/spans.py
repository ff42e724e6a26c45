"""Spans with their queries, and the queries that run again and again in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.summary import Summary, summary_of
from queryprof.model import Profile, Repeat, Span


@dataclass(frozen=True, slots=True)
class RepeatSummary:
    """A statement that a call site executes again and again in one span: a query in a loop."""

    span: str
    statement: str
    site: CallSite
    spans: int
    executions: int
    most: int

    @property
    def each(self) -> float:
        """Executions in one of these spans, on average."""
        return self.executions / self.spans


@dataclass(frozen=True, slots=True)
class SpanSummary:
    """The spans of one name.

    Attributes:
        database_share: of their wall time; with threads it can be more than 1.
        cpu_ns: of one, on average over those for which it is known; None: for none.
        queries: numbers where other summaries hold nanoseconds.
    """

    span: Span
    wall: Summary
    queries: Summary
    database_share: float
    cpu_ns: float | None
    repeats: tuple[RepeatSummary, ...]


def find_spans(profile: Profile, helpers: frozenset[Function]) -> tuple[SpanSummary, ...]:
    """The profile's spans by their wall time, most first."""

    def repeat(span: Span, found: Repeat) -> RepeatSummary:
        site = call_site(found.path, helpers)
        return RepeatSummary(
            span.name, found.statement, site, found.spans, found.executions, found.most
        )

    return tuple(
        SpanSummary(
            span=span,
            wall=summary_of(span.durations),
            queries=summary_of(span.queries),
            database_share=(
                span.database_ns / span.durations.total_ns if span.durations.total_ns else 0.0
            ),
            cpu_ns=span.cpu_ns / span.cpu_count if span.cpu_count else None,
            repeats=tuple(repeat(span, found) for found in span.repeats),
        )
        for span in sorted(profile.spans, key=lambda s: (-s.durations.total_ns, s.name))
    )


def find_repeats(spans: Iterable[SpanSummary]) -> tuple[RepeatSummary, ...]:
    """Queries in loops, by how often they ran, most first."""
    found = [repeat for span in spans for repeat in span.repeats]
    return tuple(sorted(found, key=lambda r: (-r.executions, r.span, r.statement)))
