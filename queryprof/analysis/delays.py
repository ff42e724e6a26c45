"""Why a single span took so long: what else was recorded of its thread at that time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queryprof.analysis.findings.locks import Holders, overlap_ns
from queryprof.model import Frame, LockEvent, Profile, SlowSpan

LEAST_SHARE = 0.1
"""Of the span's time: what took less explains little."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One reason.

    Attributes:
        kind: "stall": the event loop of its thread stood; "lock": a call of its thread waited.
        ns: of the span's time.
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
        self._holders = Holders(profile.lock_events)

    def of(self, span: SlowSpan) -> tuple[Delay, ...]:
        """What explains a notable part of a span, the most first."""
        found: dict[tuple[str, Frame | None], list[int]] = {}
        for kind, ns, frame in (*self._stalls(span), *self._locks(span)):
            found.setdefault((kind, frame), []).append(ns)
        delays = [Delay(kind, sum(ns), frame, len(ns)) for (kind, frame), ns in found.items()]
        notable = [one for one in delays if one.ns >= LEAST_SHARE * span.duration_ns]
        return tuple(sorted(notable, key=lambda one: -one.ns))

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
