"""How many workers suit a workload: its transactions are played by more and fewer threads."""

from __future__ import annotations

from queryprof.replay.replaying import Replay, Setting, played
from queryprof.tuning.throughput import Point, curve
from queryprof.tuning.workers import Search

WARM_UP_INTERVALS = 1


def search_workers(
    replay: Replay,
    setting: Setting,
    search: Search,
    interval_s: float,
    most_intervals: int,
    processes: bool = False,
) -> tuple[tuple[Point, ...], int]:
    """Searches until it is settled, or `most_intervals` have passed.

    Args:
        processes: workers are processes, not threads.

    Returns:
        What was measured (operations a second) of each number of workers, and the best number.

    Raises:
        ProofError: a replay fails.
    """
    observed: dict[int, list[float]] = {}
    for interval in range(most_intervals + WARM_UP_INTERVALS):
        workers = search.workers
        run = played(replay, setting, workers=workers, seconds=interval_s, processes=processes)
        speed = run.executions / run.wall_s
        if interval < WARM_UP_INTERVALS:
            continue  # the file is not in memory yet
        observed.setdefault(workers, []).append(speed)
        search.observe(speed)
        if search.is_settled:
            break
    return curve(observed), search.best
