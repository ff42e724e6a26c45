"""Programs with an event loop, recorded."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import queryprof
from queryprof.core import _core
from queryprof.model import Loop, Profile
from queryprof.region.region import Region

Main = Callable[[], Coroutine[Any, Any, Any]]


def record(main: Main, **options: Any) -> Profile:
    with queryprof.profile() as recording:
        asyncio.run(main(), **options)
    return recording.profile


def loop_of(profile: Profile) -> Loop:
    (loop,) = profile.loops
    return loop


LONGEST_S = 60.0
"""The longest wait for an event."""


@contextmanager
def until_seen(more_s: float = 0.3, least_ns: int = 0) -> Iterator[threading.Event]:
    """Return an event that is set some time after the watchdog has sampled a stall, and has
    recorded more than `least_ns` of it.

    A step that lasts until then is seen on any machine.
    """

    def stalls() -> int:
        return sum(ns for (ns,) in Region(_core.region()).rows("stalls", ("total_ns",)))

    def watch() -> None:
        end_s = time.monotonic() + LONGEST_S
        while stalls() <= before + least_ns and time.monotonic() < end_s:
            time.sleep(0.01)
        time.sleep(more_s)
        seen.set()

    before, seen = stalls(), threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        thread.join()


class Selector(selectors.DefaultSelector):
    """Measures how long a loop waits.

    Attributes:
        waited_s: the total.
        wanted_s: the total, without the time by which the system woke the loop late.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waited_s = self.wanted_s = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, selectors._EventMask]]:
        start_s = time.perf_counter()
        ready = super().select(timeout)
        took_s = time.perf_counter() - start_s
        self.waited_s += took_s
        self.wanted_s += took_s if timeout is None else min(took_s, max(timeout, 0))
        return ready
