"""Where work belongs: spans with their queries, and work that waited for threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, call_site, helpers_of
from queryprof.analysis.histogram import add_histograms
from queryprof.analysis.summary import Spread, spread_of
from queryprof.model import Distribution, Handoff, Profile, Repeat, Span, ThreadUsage

QUEUE_SIGN_NS = 1_000_000
"""A mean wait for a thread that is shorter is no sign of too few threads, ..."""

QUEUE_SIGN_SHARE = 0.01
"""... nor is one when all waits together are a smaller share of the run."""


@dataclass(frozen=True, slots=True)
class RepeatFinding:
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
class SpanFinding:
    """The spans of one name.

    Attributes:
        database_share: of their wall time; with threads it can be more than 1.
        cpu_ns: of one, on average over those for which it is known; None: of none.
        queries: numbers where other spreads hold nanoseconds.
    """

    span: Span
    wall: Spread
    queries: Spread
    database_share: float
    cpu_ns: float | None
    repeats: tuple[RepeatFinding, ...]


@dataclass(frozen=True, slots=True)
class HandoffFinding:
    """What one call site handed to threads of one kind.

    Attributes:
        program_ns: how long the program ran.
        queues: whether it waits for a thread longer than it runs there: too few threads, or one
            connection for too many tasks.
    """

    kind: str
    site: CallSite
    count: int
    errors: int
    cancelled: int
    queue: Spread
    run: Spread
    handback: Spread
    total: Spread
    program_ns: int

    @property
    def queues(self) -> bool:
        wait_ns = self.queue.mean_ns or 0
        return (
            wait_ns > (self.run.mean_ns or 0)
            and wait_ns >= QUEUE_SIGN_NS
            and wait_ns * self.queue.count >= QUEUE_SIGN_SHARE * self.program_ns
        )


def find_spans(profile: Profile) -> tuple[SpanFinding, ...]:
    """The profile's spans by their wall time, most first."""
    helpers = helpers_of(profile)

    def repeat(span: Span, found: Repeat) -> RepeatFinding:
        site = call_site(found.path, helpers)
        return RepeatFinding(
            span.name, found.statement, site, found.spans, found.executions, found.most
        )

    return tuple(
        SpanFinding(
            span=span,
            wall=spread_of(span.durations),
            queries=spread_of(span.queries),
            database_share=(
                span.database_ns / span.durations.total_ns if span.durations.total_ns else 0.0
            ),
            cpu_ns=span.cpu_ns / span.cpu_count if span.cpu_count else None,
            repeats=tuple(repeat(span, found) for found in span.repeats),
        )
        for span in sorted(profile.spans, key=lambda s: (-s.durations.total_ns, s.name))
    )


def find_repeats(profile: Profile) -> tuple[RepeatFinding, ...]:
    """Queries in loops, by how often they ran, most first."""
    found = [repeat for span in find_spans(profile) for repeat in span.repeats]
    return tuple(sorted(found, key=lambda r: (-r.executions, r.span, r.statement)))


def find_handoffs(profile: Profile) -> tuple[HandoffFinding, ...]:
    """Work handed to threads, by the time from being handed over to the end, most first."""
    helpers = helpers_of(profile)
    program_ns = max((process.wall_ns for process in profile.processes), default=0)
    groups: dict[tuple[str, CallSite], list[Handoff]] = {}
    for handoff in profile.handoffs:
        site = call_site(handoff.path, helpers)
        groups.setdefault((handoff.kind, CallSite(site.frame)), []).append(handoff)
    found = [
        HandoffFinding(
            kind=kind,
            site=site,
            count=sum(h.count for h in group),
            errors=sum(h.errors for h in group),
            cancelled=sum(h.cancelled for h in group),
            queue=spread_of(added(h.queue for h in group)),
            run=spread_of(added(h.run for h in group)),
            handback=spread_of(added(h.handback for h in group)),
            total=spread_of(added(h.total for h in group)),
            program_ns=program_ns,
        )
        for (kind, site), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda f: -(f.total.mean_ns or 0) * f.total.count))


def added(distributions: Iterable[Distribution]) -> Distribution:
    """The sum of distributions."""
    group = list(distributions)
    return Distribution(
        count=sum(d.count for d in group),
        total_ns=sum(d.total_ns for d in group),
        max_ns=max((d.max_ns for d in group), default=0),
        histogram=add_histograms(d.histogram for d in group),
    )


def usage_by_name(profile: Profile) -> Mapping[str, ThreadUsage]:
    """What the threads used, by the name that people see: with the process where there are
    several.
    """
    pids = {process.id: process.pid for process in profile.processes}
    many = len(pids) > 1
    return {
        f"{u.thread.name} (process {pids[u.thread.process_id]})" if many else u.thread.name: u
        for u in sorted(profile.thread_usage, key=lambda u: -(u.user_ns + u.system_ns))
    }


def busy(profile: Profile, parts: int) -> tuple[float, Mapping[str, list[float]]]:
    """How busy threads were over the run: the length of a part in ns, and by the names of
    `usage_by_name` the CPU time in ns in each of at most so many equal parts.
    """
    usage = usage_by_name(profile)
    starts = [i.start_unix_ns for used in usage.values() for i in used.timeline]
    if not starts:
        return 0.0, {name: [] for name in usage}
    width_ns = max(used.width_ns for used in usage.values())
    first, length = min(starts), max(starts) + width_ns - min(starts)
    count = max(1, min(parts, length // width_ns))
    part_ns = length / count
    found = {name: [0.0] * count for name in usage}
    for name, used in usage.items():
        for interval in used.timeline:
            place = min(int((interval.start_unix_ns - first) / part_ns), count - 1)
            found[name][place] += interval.cpu_ns
    return part_ns, found
