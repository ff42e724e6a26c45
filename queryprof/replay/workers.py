"""How many workers suit a workload: its transactions are played by more and fewer threads."""

from __future__ import annotations

from queryprof.replay.replaying import Replay, Setting, played
from queryprof.tuning.throughput import Point, curve
from queryprof.tuning.workers import HillClimbing, LinearSearch, Search, SteadySearch

WARM_UP_INTERVALS = 1
CERTAIN = 0.05
"""Half of the best's 95% interval, as a share of it, at which a search that never ends is ended."""

LEAST_INTERVALS = 6


def search_workers(
    replay: Replay,
    setting: Setting,
    name: str,
    highest: int,
    interval_s: float,
    most_intervals: int,
    processes: bool = False,
) -> tuple[tuple[Point, ...], int]:
    """Searches until it is settled, or the best is certain, or `most_intervals` have passed.

    Args:
        name: steady, linear or hill-climbing; see queryprof.tuning.workers.
        processes: workers are processes, not threads.

    Returns:
        What was measured (operations a second) of each number of workers, and the best number.

    Raises:
        ProofError: a replay fails.
    """
    search = _search(name, highest)
    observed: dict[int, list[float]] = {}
    for interval in range(most_intervals + WARM_UP_INTERVALS):
        workers = search.workers
        run = played(replay, setting, workers=workers, seconds=interval_s, processes=processes)
        speed = run.executions / run.wall_s
        if interval < WARM_UP_INTERVALS:
            continue  # the file is not in memory yet
        observed.setdefault(workers, []).append(speed)
        search.observe(speed)
        if search.is_settled or (name == "hill-climbing" and _is_certain(observed)):
            break
    return curve(observed), search.best


def _search(name: str, highest: int) -> Search:
    if name == "linear":
        return LinearSearch(1, highest)
    return HillClimbing(1, highest) if name == "hill-climbing" else SteadySearch(1, highest)


def _is_certain(observed: dict[int, list[float]]) -> bool:
    best = max(curve(observed), key=lambda point: point.operations)
    return (
        best.intervals >= LEAST_INTERVALS
        and best.half_width is not None
        and best.half_width < CERTAIN * best.operations
    )
