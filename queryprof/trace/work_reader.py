"""A trace file's part about where work belongs, as the model's rows; beside
queryprof.trace.reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from queryprof.model import (
    CallPath,
    Distribution,
    Handoff,
    Repeat,
    Span,
    Thread,
    ThreadUsage,
    UsageInterval,
)
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.work_store import HANDOFF_PARTS, HANDOFF_SUMS, INTERVAL_SUMS, USAGE_SUMS

Key = tuple[int, str]
"""The id of a row, and what a histogram is of."""


def load_spans(
    trace: CheckedTrace,
    spans: Mapping[int, str],
    statements: Mapping[int, str],
    stacks: Mapping[int | None, CallPath],
) -> Iterator[Span]:
    """The spans of an open trace; the mappings are by the ids in it."""
    histograms = _histograms(trace, "span_histogram", "span_id", "figure")
    statuses: dict[int, dict[int, int]] = defaultdict(dict)
    for span, status, count in trace.rows("span_status", ("span_id", "status", "count")):
        statuses[span][status] = count
    repeats: dict[int, list[Repeat]] = defaultdict(list)
    columns = ("span_id", "statement_id", "path_id", "spans", "executions", "most")
    found = sorted(trace.rows("span_repeat", columns), key=lambda row: (-row[4], row[1], row[2]))
    for span, statement, path, *figures in found:
        repeats[span].append(Repeat(statements[statement], stacks[path], *figures))
    totals = (
        "span_id", "count", "errors", "cpu_count", "cpu_ns", "database_ns", "total_ns", "max_ns",
        "queries", "queries_max",
    )  # fmt: skip
    for span, count, errors, cpu_count, cpu_ns, database_ns, *rest in sorted(
        trace.rows("span_total", totals), key=lambda row: -row[6]
    ):
        total_ns, max_ns, queries, queries_max = rest
        yield Span(
            spans[span], count, errors, cpu_count, cpu_ns, database_ns,
            Distribution(count, total_ns, max_ns, histograms[span, "duration"]),
            Distribution(count, queries, queries_max, histograms[span, "queries"]),
            tuple(repeats[span]), statuses[span],
        )  # fmt: skip


def load_handoffs(
    trace: CheckedTrace, spans: Mapping[int, str], stacks: Mapping[int | None, CallPath]
) -> Iterator[Handoff]:
    """The handoffs of an open trace; the mappings are by the ids in it."""
    histograms = _histograms(trace, "handoff_histogram", "handoff_id", "part")
    times: dict[Key, Distribution] = {
        (number, part): Distribution(count, total_ns, max_ns, histograms[number, part])
        for number, part, count, total_ns, max_ns in trace.rows(
            "handoff_time", ("handoff_id", "part", "count", "total_ns", "max_ns")
        )
    }
    for number, kind, path, span, *sums in trace.rows(
        "handoff", ("id", "kind", "path_id", "span_id", *HANDOFF_SUMS)
    ):
        parts = (times.get((number, part), Distribution()) for part in HANDOFF_PARTS)
        yield Handoff(kind, stacks[path], spans[span], *sums, *parts)


def load_usage(trace: CheckedTrace, threads: Mapping[int, Thread]) -> Iterator[ThreadUsage]:
    """What the threads of an open trace used; the mapping is by the ids in it."""
    columns = ("thread_id", "start_unix_ns", *INTERVAL_SUMS)
    width_ns, intervals = trace.intervals("thread_timeline", columns, "usage_width_ns")
    timelines: dict[int, list[UsageInterval]] = defaultdict(list)
    for thread, *interval in intervals:
        timelines[thread].append(UsageInterval(*interval))
    rows = trace.rows("thread_usage", ("thread_id", *USAGE_SUMS))
    user, system = (1 + USAGE_SUMS.index(name) for name in ("user_ns", "system_ns"))
    for thread, *sums in sorted(rows, key=lambda row: -row[user] - row[system]):
        values: tuple[Any, ...] = (*sums, width_ns, tuple(timelines[thread]))
        yield ThreadUsage(threads[thread], *values)


def _histograms(
    trace: CheckedTrace, table: str, owner: str, figure: str
) -> Mapping[Key, dict[int, int]]:
    found: dict[Key, dict[int, int]] = defaultdict(dict)
    for number, name, bucket, count in trace.rows(table, (owner, figure, "bucket", "count")):
        found[number, name][bucket] = count
    return found
