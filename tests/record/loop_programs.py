"""Programs with an event loop, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import queryprof
from queryprof.model import Loop, Profile

Main = Callable[[], Coroutine[Any, Any, Any]]


def record(main: Main, **options: Any) -> Profile:
    with queryprof.profile() as recording:
        asyncio.run(main(), **options)
    return recording.profile


def loop_of(profile: Profile) -> Loop:
    (loop,) = profile.loops
    return loop
