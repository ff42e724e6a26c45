"""The wall clock of recordings. The core's clock.c has the same rule."""

from __future__ import annotations

from time import monotonic_ns, time_ns

LATEST_UNIX_NS = 1 << 62
"""An instant in the year 2116, the latest that a trace can hold."""


def unix_ns() -> int:
    """Return the Unix time in nanoseconds.

    Before 1970 and after 2116 the clock is wrong. Then return the time since the machine started,
    so that durations stay right.
    """
    try:
        found = time_ns()
    except OverflowError:  # Python's own limit, the year 2262
        found = -1
    return found if 0 <= found <= LATEST_UNIX_NS else monotonic_ns()
