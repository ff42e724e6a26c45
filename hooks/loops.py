"""All event loops that queryprof attaches to, and how late those that run now are."""

from __future__ import annotations

from queryprof.hooks.asyncio_loop import AsyncioLoop
from queryprof.hooks.heartbeat import beating
from queryprof.hooks.trio_loop import TrioLoop
from queryprof.hooks.twisted_loop import STEPS, TwistedLoop
from queryprof.hooks.uvloop_loop import UvloopLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queryprof.hooks.imports import Hook


def loop_hooks() -> list[Hook]:
    """A hook for each library, or part of one."""
    return [AsyncioLoop(), UvloopLoop(), TrioLoop(), *map(TwistedLoop, STEPS)]


def loop_lag() -> list[Mapping[str, str | int | float]]:
    """How late the loops of this process that run now were in the last minute.

    Returns:
        for each loop: `kind` (its library), `beats` (heartbeats looked at, ten a second), and
        `mean_s`, `p95_s` and `max_s` of their lag in seconds; empty while nothing is recorded.
    """
    figures: list[Mapping[str, str | int | float]] = []
    for beats in list(beating):
        lags_s = sorted(beats.lags_s)
        if lags_s and beats.is_running():
            figures.append(
                {
                    "kind": beats.kind,
                    "beats": len(lags_s),
                    "mean_s": sum(lags_s) / len(lags_s),
                    "p95_s": lags_s[-(-len(lags_s) * 95 // 100) - 1],
                    "max_s": lags_s[-1],
                }
            )
    return figures
