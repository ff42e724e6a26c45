"""The event loops' part of a trace file, as the model's rows; beside queryprof.trace.reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from queryprof.model import CallPath, Cause, Distribution, Frame, Loop, Stall, Step, Thread
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.loop_store import LOOP_SUMS, STALL_SUMS


def load_loops(
    trace: CheckedTrace,
    statements: Mapping[int, str],
    frames: Mapping[int, Frame],
    stacks: Mapping[int | None, CallPath],
    threads: Mapping[int, Thread],
) -> Iterator[Loop]:
    """The loops of an open trace; the mappings are by the ids in it."""

    def causes(owner: str) -> Mapping[int, list[Cause]]:
        found: dict[int, list[Cause]] = defaultdict(list)
        columns = (f"{owner}_id", "statement_id", "path_id", "calls", "ns")
        rows = trace.rows(f"{owner}_cause", columns)
        for number, statement, path, calls, ns in sorted(rows, key=lambda row: -row[4]):
            found[number].append(Cause(statements[statement], stacks[path], calls, ns))
        return found

    def histograms(table: str, *keys: str) -> Mapping[object, dict[int, int]]:
        found: dict[object, dict[int, int]] = defaultdict(dict)
        for *key, bucket, count in trace.rows(table, (*keys, "bucket", "count")):
            found[tuple(key)][bucket] = count
        return found

    lag_buckets = histograms("lag_histogram", "loop_id", "source")
    lags = {
        (loop, source): Distribution(count, total_ns, max_ns, lag_buckets[loop, source])
        for loop, source, count, total_ns, max_ns in trace.rows(
            "lag", ("loop_id", "source", "count", "total_ns", "max_ns")
        )
    }
    step_buckets = histograms("step_histogram", "step_id")
    step_causes = causes("step")
    steps: dict[int, list[Step]] = defaultdict(list)
    columns: tuple[str, ...] = (
        "id", "loop_id", "frame_id", "count", "total_ns", "max_ns", "database_ns", "gc_ns",
    )  # fmt: skip
    for number, loop, frame, count, total_ns, max_ns, *times in sorted(
        trace.rows("step", columns), key=lambda row: -row[4]
    ):
        durations = Distribution(count, total_ns, max_ns, step_buckets[number,])
        values: tuple[Any, ...] = (durations, *times, tuple(step_causes[number]))
        steps[loop].append(Step(frames[frame], *values))
    stall_causes = causes("stall")
    stalls: dict[int, list[Stall]] = defaultdict(list)
    columns = ("id", "loop_id", "frame_id", "path_id", "stack_id", "max_ns", *STALL_SUMS)
    for number, loop, frame, path, stack, max_ns, count, total_ns, *sums in sorted(
        trace.rows("stall", columns), key=lambda row: -row[7]
    ):
        values = (count, total_ns, max_ns, *sums, tuple(stall_causes[number]))
        stalls[loop].append(Stall(frames[frame], stacks[path], stacks[stack], *values))
    for number, kind, thread, has_steps, waiting_max, *sums in trace.rows(
        "loop", ("id", "kind", "thread_id", "has_steps", "waiting_max", *LOOP_SUMS)
    ):
        values = (
            *sums, waiting_max, lags.get((number, "timer"), Distribution()),
            lags.get((number, "beat"), Distribution()), tuple(steps[number]),
            tuple(stalls[number]),
        )  # fmt: skip
        yield Loop(kind, threads[thread], bool(has_steps), *values)
