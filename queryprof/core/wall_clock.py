"""The wall clock of recordings. The core's clock.c treats wrong clocks in the same way."""

from __future__ import annotations

from time import monotonic_ns, time_ns

LATEST_UNIX_NS = 1 << 62
"""The latest instant that a trace can hold, in the year 2116."""


def unix_ns() -> int:
    """Return the Unix time in nanoseconds.

    A clock before 1970 or after 2116 is wrong. In this case, return the time since the machine
    started, so that durations stay right.
    """
    try:
        found = time_ns()
    except OverflowError:  # the limit of 64 bits, in the year 2262
        found = -1
    return found if 0 <= found <= LATEST_UNIX_NS else monotonic_ns()
