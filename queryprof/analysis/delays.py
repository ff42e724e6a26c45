"""Why a single span took so long: what else was recorded of its thread at that time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queryprof.analysis.lock_holders import Holders, hosts_of, overlap_ns
from queryprof.model import Frame, LockEvent, Profile, SlowSpan

LEAST_SHARE = 0.1
"""Of the span's time: what took less explains little."""

OTHERS = 0.8
"""Of the time in which a span's thread did nothing that is known, other threads computed so much:
then it may have waited for them."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One reason.

    Attributes:
        kind: "stall": the event loop of its thread stood; "lock": a call of its thread waited;
            "queue": functions that it handed over waited for a thread; "cpu": its thread computed;
            "others": its thread did none of this, while other threads of the process computed.
        ns: of the span's time; of "others" the most.
        frame: where the loop stood; or where the lock was taken that was waited for. None: unknown.
        count: stalls, or waits.
    """

    kind: str
    ns: int
    frame: Frame | None
    count: int


class Delays:
    """Looks up the longest stalls and waits of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._loops = profile.loops
        self._waits = [event for event in profile.lock_events if event.kind == "wait"]
        self._holders = Holders(profile.lock_events, hosts_of(profile))
        self._usage = profile.thread_usage

    def of(self, span: SlowSpan) -> tuple[Delay, ...]:
        """What explains a notable part of a span, the most first."""
        found: dict[tuple[str, Frame | None], list[int]] = {}
        for kind, ns, frame in (*self._stalls(span), *self._locks(span)):
            found.setdefault((kind, frame), []).append(ns)
        delays = [Delay(kind, sum(ns), frame, len(ns)) for (kind, frame), ns in found.items()]
        delays += self._of_threads(span, sum(one.ns for one in delays))
        notable = [one for one in delays if one.ns >= LEAST_SHARE * span.duration_ns]
        return tuple(sorted(notable, key=lambda one: -one.ns))

    def _of_threads(self, span: SlowSpan, known_ns: int) -> Iterator[Delay]:
        """Waiting for a thread, computing, and others that computed meanwhile."""
        queue_ns = min(span.queue_ns or 0, span.duration_ns)
        if queue_ns:
            yield Delay("queue", queue_ns, None, 1)
        if span.cpu_ns is None:
            return
        if span.cpu_ns:
            yield Delay("cpu", span.cpu_ns, None, 1)
        used = (known_ns, queue_ns, span.database_ns, span.cpu_ns)
        idle_ns = max(0, span.duration_ns - sum(used))
        others_ns = min(idle_ns, round(self._others_ns(span)))
        if idle_ns and others_ns >= OTHERS * idle_ns:
            yield Delay("others", others_ns, None, 1)

    def _others_ns(self, span: SlowSpan) -> float:
        """The CPU time of the process's other threads while a span ran, as far as it is known."""
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

    def _stalls(self, span: SlowSpan) -> Iterator[tuple[str, int, Frame | None]]:
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

    def _locks(self, span: SlowSpan) -> Iterator[tuple[str, int, Frame | None]]:
        for wait in self._waits:
            if wait.thread == span.thread:
                ns = overlap_ns(
                    span.started_unix_ns, span.duration_ns, wait.start_unix_ns, wait.duration_ns
                )
                if ns > 0:
                    yield "lock", ns, self._taken_at(wait)

    def _taken_at(self, wait: LockEvent) -> Frame | None:
        holders = self._holders.of(wait)
        return holders[0][0].path[0] if holders and holders[0][0].path else None
