"""The event loops' part of a trace file, as the model's rows; beside queryprof.trace.reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from sqlite3 import Connection
from typing import Any

from queryprof.model import CallPath, Cause, Distribution, Frame, Loop, Stall, Step, Thread
from queryprof.trace.loop_store import LOOP_SUMS, STALL_SUMS


def load_loops(
    connection: Connection,
    statements: Mapping[int, str],
    frames: Mapping[int, Frame],
    stacks: Mapping[int | None, CallPath],
    threads: Mapping[int, Thread],
) -> Iterator[Loop]:
    """The loops of an open trace; the mappings are by the ids in it."""

    def causes(owner: str) -> Mapping[int, list[Cause]]:
        found: dict[int, list[Cause]] = defaultdict(list)
        for number, statement, path, calls, ns in connection.execute(
            f"SELECT {owner}_id, statement_id, path_id, calls, ns FROM {owner}_cause"
            " ORDER BY ns DESC"
        ):
            found[number].append(Cause(statements[statement], stacks[path], calls, ns))
        return found

    def histograms(sql: str) -> Mapping[object, dict[int, int]]:
        found: dict[object, dict[int, int]] = defaultdict(dict)
        for *key, bucket, count in connection.execute(sql):
            found[tuple(key)][bucket] = count
        return found

    lag_buckets = histograms("SELECT loop_id, source, bucket, count FROM lag_histogram")
    lags = {
        (loop, source): Distribution(count, total_ns, max_ns, lag_buckets[loop, source])
        for loop, source, count, total_ns, max_ns in connection.execute(
            "SELECT loop_id, source, count, total_ns, max_ns FROM lag"
        )
    }
    step_buckets = histograms("SELECT step_id, bucket, count FROM step_histogram")
    step_causes = causes("step")
    steps: dict[int, list[Step]] = defaultdict(list)
    for number, loop, frame, count, total_ns, max_ns, *times in connection.execute(
        "SELECT id, loop_id, frame_id, count, total_ns, max_ns, database_ns, gc_ns FROM step"
        " ORDER BY total_ns DESC, id"
    ):
        durations = Distribution(count, total_ns, max_ns, step_buckets[number,])
        values: tuple[Any, ...] = (durations, *times, tuple(step_causes[number]))
        steps[loop].append(Step(frames[frame], *values))
    stall_causes = causes("stall")
    stalls: dict[int, list[Stall]] = defaultdict(list)
    for number, loop, frame, path, stack, max_ns, count, total_ns, *sums in connection.execute(
        f"SELECT id, loop_id, frame_id, path_id, stack_id, max_ns, {', '.join(STALL_SUMS)}"
        " FROM stall ORDER BY total_ns DESC, id"
    ):
        values = (count, total_ns, max_ns, *sums, tuple(stall_causes[number]))
        stalls[loop].append(Stall(frames[frame], stacks[path], stacks[stack], *values))
    for number, kind, thread, has_steps, waiting_max, *sums in connection.execute(
        f"SELECT id, kind, thread_id, has_steps, waiting_max, {', '.join(LOOP_SUMS)} FROM loop"
        " ORDER BY id"
    ):
        values = (
            *sums, waiting_max, lags.get((number, "timer"), Distribution()),
            lags.get((number, "beat"), Distribution()), tuple(steps[number]),
            tuple(stalls[number]),
        )  # fmt: skip
        yield Loop(kind, threads[thread], bool(has_steps), *values)
