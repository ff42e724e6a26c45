"""The heartbeat of an event loop: a timer that measures the loop's lag ten times a second.

A stalled loop misses beats. Each missed beat is recorded, with the time from its due time until it
could be recorded. So a long stall counts for as many beats as it delayed. If missed beats were
skipped, the stall would be one late beat among many punctual ones.
"""

from __future__ import annotations

from time import monotonic

from queryprof.core import _core
from queryprof.hooks.settings import hook_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

MAX_KEPT_BEATS = 600
"""Number of beats whose lag the program may read: the last minute."""

MAX_RECORDED_MISSED_BEATS = 36_000
"""Maximum number of missed beats that are recorded after a stall: one hour."""


class Beats:
    """The beats of one running loop. Records each beat, and keeps the lag of the last beats.

    Args:
        kind: the loop's library.
        is_running: returns whether the loop still runs.
    """

    def __init__(self, kind: str, is_running: Callable[[], bool] = lambda: True) -> None:
        from collections import deque  # late, because a program without a loop need not import it

        self.kind = kind
        self.is_running = is_running
        self.interval_s = hook_settings.heartbeat_s
        self.lags_s: deque[float] = deque(maxlen=MAX_KEPT_BEATS)

    def start(self) -> None:
        """Add the loop to the running loops."""
        beating.append(self)

    def stop(self) -> None:
        """Remove the loop from the running loops."""
        if self in beating:
            beating.remove(self)

    def record(self, due_s: float, now_s: float, busy_since_s: float = 0.0) -> float:
        """Record all beats from `due_s` to now, and return the due time of the next beat.

        Beats that were due before `busy_since_s` found the loop idle, so they were not late.
        """
        due_s = max(due_s, now_s - MAX_RECORDED_MISSED_BEATS * self.interval_s)
        idle = -int((due_s - min(busy_since_s, now_s)) // self.interval_s)
        if idle > 1:
            _core.add_heartbeat_lag(0.0, idle)
            self.lags_s.extend([0.0] * min(idle, MAX_KEPT_BEATS))
            due_s += idle * self.interval_s
        while due_s <= now_s:
            lag_s = now_s - due_s if due_s >= busy_since_s else 0.0
            _core.add_heartbeat_lag(lag_s)
            self.lags_s.append(lag_s)
            due_s += self.interval_s
        return due_s


class Heartbeat(Beats):
    """A timer in the loop itself, which is as late as any other timer.

    Args:
        kind: the loop's library.
        call_at: schedules a function for a time of the monotonic clock, in seconds.
        is_running: returns whether the loop still runs.
        await_beat: called with the time of the next beat, for loops in which only beats show
            stalls.
    """

    def __init__(
        self,
        kind: str,
        call_at: Callable[[float, Heartbeat], object],
        is_running: Callable[[], bool],
        await_beat: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(kind, is_running)
        self._call_at = call_at
        self._await_beat = await_beat
        self._timer: object = None
        self._due_s = 0.0
        self._last_step = -1

    def start(self) -> None:
        """Schedule the first beat."""
        self.record_and_schedule(monotonic() + self.interval_s)

    def record_and_schedule(self, due_s: float, busy_since_s: float = 0.0) -> None:
        """Record the beats due since `due_s`, and schedule the next beat; see `record`."""
        super().start()
        self._schedule(self.record(due_s, monotonic(), busy_since_s))

    def stop(self) -> None:
        """Cancel the next beat."""
        super().stop()
        if self._await_beat:
            _core.step_end()
        cancel = getattr(self._timer, "cancel", None)
        self._timer = None
        if cancel:
            cancel()

    def __call__(self) -> None:
        if self not in beating:
            return
        due_s, now_s = self._due_s, monotonic()
        lag_s = now_s - due_s
        if 0.0 <= lag_s < self.interval_s:  # the usual case: one beat is due
            step = _core.add_heartbeat_lag(lag_s)
            self.lags_s.append(lag_s)
            # An idle loop is measured half as often, because waking it costs the most.
            due_s += self.interval_s if step != self._last_step else 2 * self.interval_s
            self._last_step = step
        else:
            due_s = self.record(due_s, now_s)
        self._schedule(due_s)

    def _schedule(self, due_s: float) -> None:
        self._due_s = due_s
        if self._await_beat:
            self._await_beat(due_s)
        self._timer = self._call_at(due_s, self)


beating: list[Beats] = []
"""The beats of the running loops."""


def stop_all_heartbeats() -> None:
    """Stop all heartbeats. Remaining timers do nothing."""
    beating.clear()
