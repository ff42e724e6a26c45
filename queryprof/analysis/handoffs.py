"""Summarize handoffs: work that the program submitted to threads, and the waits for its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.histogram import add_histograms
from queryprof.analysis.summary import Summary, summarize_durations
from queryprof.model import Distribution, Frame, Handoff, Profile

QUEUE_SIGN_NS = 1_000_000
"""A shorter mean wait for a thread does not indicate too few threads."""

QUEUE_SIGN_SHARE = 0.01
"""Waits that total a smaller share of the run do not indicate too few threads."""


MAX_IDLE_WAIT_NS = 100_000
"""If the median wait is shorter, the thread or loop was idle: such waits take 9 to 15 us on a quiet
machine (benchmarks/loops.py). A longer median means that waits overlap, or that the loop or threads
are busy.
"""


@dataclass(frozen=True, slots=True)
class HandoffWaits:
    """The time that a line's awaits took on top of the work in threads.

    Attributes:
        are_short: True if the waits certainly do not overlap.
    """

    ns: float
    are_short: bool


@dataclass(frozen=True, slots=True)
class HandoffSummary:
    """The work that one call site handed to threads of one kind.

    Attributes:
        program_ns: how long the program ran.
        queue: waits for a free thread. run: the work itself. handback: the result's waits for the
            event loop. total: from submission to end.
    """

    kind: str
    site: CallSite
    count: int
    errors: int
    cancelled: int
    queue: Summary
    run: Summary
    handback: Summary
    total: Summary
    program_ns: int

    @property
    def waits_mostly_in_queue(self) -> bool:
        wait_ns = self.queue.mean_ns or 0
        return (
            wait_ns > max(self.run.mean_ns or 0, self.handback.mean_ns or 0)
            and wait_ns >= QUEUE_SIGN_NS
            and wait_ns * self.queue.count >= QUEUE_SIGN_SHARE * self.program_ns
        )


def handoff_waits_by_line(handoffs: Iterable[HandoffSummary]) -> dict[Frame, HandoffWaits]:
    """Return the waits by line. Short waits are estimated from their median, because a busy machine
    makes a few of them long.
    """
    found: dict[Frame, HandoffWaits] = {}
    for one in handoffs:
        halves = (one.queue.p50_ns or 0, one.handback.p50_ns or 0)
        means = (one.queue.mean_ns or 0, one.handback.mean_ns or 0)
        are_short = max(halves) < MAX_IDLE_WAIT_NS
        if one.site.frame:
            known = found.get(one.site.frame, HandoffWaits(0.0, True))
            ns = sum(halves if are_short else means) * one.count
            found[one.site.frame] = HandoffWaits(known.ns + ns, known.are_short and are_short)
    return found


def find_handoffs(profile: Profile, helpers: frozenset[Function]) -> tuple[HandoffSummary, ...]:
    """Return the work handed to threads, by the time from submission to end, longest first."""
    program_ns = max((process.wall_ns for process in profile.processes), default=0)
    groups: dict[tuple[str, CallSite], list[Handoff]] = {}
    for handoff in profile.handoffs:
        site = call_site(handoff.path, helpers)
        groups.setdefault((handoff.kind, CallSite(site.frame)), []).append(handoff)
    found = [
        HandoffSummary(
            kind=kind,
            site=site,
            count=sum(h.count for h in group),
            errors=sum(h.errors for h in group),
            cancelled=sum(h.cancelled for h in group),
            queue=summarize_durations(sum_distributions(h.queue for h in group)),
            run=summarize_durations(sum_distributions(h.run for h in group)),
            handback=summarize_durations(sum_distributions(h.handback for h in group)),
            total=summarize_durations(sum_distributions(h.total for h in group)),
            program_ns=program_ns,
        )
        for (kind, site), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda f: -(f.total.mean_ns or 0) * f.total.count))


def sum_distributions(distributions: Iterable[Distribution]) -> Distribution:
    """Return the sum of distributions."""
    group = list(distributions)
    return Distribution(
        count=sum(d.count for d in group),
        total_ns=sum(d.total_ns for d in group),
        max_ns=max((d.max_ns for d in group), default=0),
        histogram=add_histograms(d.histogram for d in group),
    )
