"""Find the best number of workers for a workload by replaying its transactions."""

from __future__ import annotations

from queryprof.replay.replaying import Replay, ReplaySetting, play_on_copy
from queryprof.statistics.throughput import WorkersResult, throughput_curve
from queryprof.statistics.worker_search import WorkerSearch

WARM_UP_INTERVALS = 1


def search_workers(
    replay: Replay,
    setting: ReplaySetting,
    search: WorkerSearch,
    interval_s: float,
    most_intervals: int,
) -> tuple[tuple[WorkersResult, ...], int]:
    """Replay with different numbers of workers until the search is settled, at most
    `most_intervals` times.

    Returns:
        The executions per second for each number of workers, and the best number.

    Raises:
        ProofError: a replay fails.
    """
    observed: dict[int, list[float]] = {}
    for interval in range(most_intervals + WARM_UP_INTERVALS):
        workers = search.workers
        run = play_on_copy(replay, setting, workers=workers, seconds=interval_s)
        speed = run.executions / run.wall_s
        if interval < WARM_UP_INTERVALS:
            continue  # warm up the file cache
        observed.setdefault(workers, []).append(speed)
        search.observe(speed)
        if search.is_settled:
            break
    return throughput_curve(observed), search.best
