"""Explain why a single span took long, from the stalls, lock waits and CPU use recorded during the
span.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queryprof.analysis.lock_holders import LockHolders, host_by_process, overlap_ns
from queryprof.model import Frame, LockEvent, Profile, SlowSpan

MIN_SHARE = 0.1
"""Reasons that explain a smaller share of the span's time are omitted."""

OTHERS = 0.8
"""If other threads computed for at least this share of the span's unexplained time, the span may
have waited for them.
"""


@dataclass(frozen=True, slots=True)
class Delay:
    """One reason for a delay.

    Attributes:
        kind: "stall" if the event loop of the span's thread was blocked; "lock" if a call of that
            thread waited for a lock; "queue" if the span's functions waited for a free thread;
            "cpu" if the span's thread computed; "others" if the span's time is unexplained while
            other threads computed.
        ns: how much of the span this reason explains; for "others" an upper bound.
        frame: the frame that blocked the loop, or that took the awaited lock; None if unknown.
        event_count: the number of stalls or waits.
    """

    kind: str
    ns: int
    frame: Frame | None
    event_count: int


class Delays:
    """Explain slow spans with the longest stalls and waits of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._loops = profile.loops
        self._waits = [event for event in profile.lock_events if event.kind == "wait"]
        self._holders = LockHolders(profile.lock_events, host_by_process(profile))
        self._usage = profile.thread_usage

    def delays_of_span(self, span: SlowSpan) -> tuple[Delay, ...]:
        """Return the reasons that explain a notable part of a span, largest first."""
        found: dict[tuple[str, Frame | None], list[int]] = {}
        for kind, ns, frame in (*self._stall_delays(span), *self._lock_delays(span)):
            found.setdefault((kind, frame), []).append(ns)
        delays = [Delay(kind, sum(ns), frame, len(ns)) for (kind, frame), ns in found.items()]
        delays += self._thread_delays(span, sum(one.ns for one in delays))
        notable = [one for one in delays if one.ns >= MIN_SHARE * span.duration_ns]
        return tuple(sorted(notable, key=lambda one: -one.ns))

    def _thread_delays(self, span: SlowSpan, known_ns: int) -> Iterator[Delay]:
        """Yield the delays from thread use: waiting for a free thread, computing, and other threads
        that computed.
        """
        queue_ns = min(span.queue_ns or 0, span.duration_ns)
        if queue_ns:
            yield Delay("queue", queue_ns, None, 1)
        if span.cpu_ns is None:
            return
        if span.cpu_ns:
            yield Delay("cpu", span.cpu_ns, None, 1)
        used = (known_ns, queue_ns, span.database_ns, span.cpu_ns)
        idle_ns = max(0, span.duration_ns - sum(used))
        others_ns = min(idle_ns, round(self._other_threads_cpu_ns(span)))
        if idle_ns and others_ns >= OTHERS * idle_ns:
            yield Delay("others", others_ns, None, 1)

    def _other_threads_cpu_ns(self, span: SlowSpan) -> float:
        """Return the CPU time of the process's other threads during a span, as far as known."""
        return sum(
            interval.cpu_ns
            * max(
                0,
                overlap_ns(
                    span.started_unix_ns, span.duration_ns, interval.start_unix_ns, usage.width_ns
                ),
            )
            / usage.width_ns
            for usage in self._usage
            if usage.thread.process_id == span.thread.process_id and usage.thread != span.thread
            for interval in usage.timeline
            if usage.width_ns
        )

    def _stall_delays(self, span: SlowSpan) -> Iterator[tuple[str, int, Frame | None]]:
        for loop in self._loops:
            if loop.thread == span.thread:
                for event in loop.stall_events:
                    ns = overlap_ns(
                        span.started_unix_ns,
                        span.duration_ns,
                        event.started_unix_ns,
                        event.duration_ns,
                    )
                    if ns > 0:
                        known = event.function if event.function.function else None
                        yield "stall", ns, event.path[0] if event.path else known

    def _lock_delays(self, span: SlowSpan) -> Iterator[tuple[str, int, Frame | None]]:
        for wait in self._waits:
            if wait.thread == span.thread:
                ns = overlap_ns(
                    span.started_unix_ns, span.duration_ns, wait.start_unix_ns, wait.duration_ns
                )
                if ns > 0:
                    yield "lock", ns, self._lock_taken_at(wait)

    def _lock_taken_at(self, wait: LockEvent) -> Frame | None:
        holders = self._holders.blockers_of(wait)
        return holders[0][0].path[0] if holders and holders[0][0].path else None
