"""The lag of the running event loops."""

from __future__ import annotations

from queryprof.hooks.event_loops.heartbeat import beating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def loop_lag() -> list[Mapping[str, str | int | float]]:
    """Return the lag of this process's running loops during the last minute.

    Returns:
        For each loop: `kind` (its library), `beats` (number of heartbeats, ten a second), and
        `mean_s`, `p95_s` and `max_s` of their lag in seconds. Empty while nothing is recorded.
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
