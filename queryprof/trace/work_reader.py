"""A trace file's part about where work belongs, as the model's rows; beside
queryprof.trace.reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from sqlite3 import Connection
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
from queryprof.trace.usage_writer import USAGE_WIDTH_NS
from queryprof.trace.work_store import HANDOFF_PARTS, HANDOFF_SUMS, USAGE_SUMS

Key = tuple[int, str]
"""The id of a row, and what a histogram is of."""


def load_spans(
    connection: Connection,
    spans: Mapping[int, str],
    statements: Mapping[int, str],
    stacks: Mapping[int | None, CallPath],
) -> Iterator[Span]:
    """The spans of an open trace; the mappings are by the ids in it."""
    histograms = _histograms(connection, "span_histogram", "span_id", "figure")
    statuses: dict[int, dict[int, int]] = defaultdict(dict)
    for span, status, count in connection.execute("SELECT * FROM span_status ORDER BY status"):
        statuses[span][status] = count
    repeats: dict[int, list[Repeat]] = defaultdict(list)
    for span, statement, path, *figures in connection.execute(
        "SELECT span_id, statement_id, path_id, spans, executions, most FROM span_repeat"
        " ORDER BY executions DESC, statement_id, path_id"
    ):
        repeats[span].append(Repeat(statements[statement], stacks[path], *figures))
    for span, count, errors, cpu_count, cpu_ns, database_ns, *rest in connection.execute(
        "SELECT span_id, count, errors, cpu_count, cpu_ns, database_ns, total_ns, max_ns, queries,"
        " queries_max FROM span_total ORDER BY total_ns DESC, span_id"
    ):
        total_ns, max_ns, queries, queries_max = rest
        yield Span(
            spans[span], count, errors, cpu_count, cpu_ns, database_ns,
            Distribution(count, total_ns, max_ns, histograms[span, "duration"]),
            Distribution(count, queries, queries_max, histograms[span, "queries"]),
            tuple(repeats[span]), statuses[span],
        )  # fmt: skip


def load_handoffs(
    connection: Connection, spans: Mapping[int, str], stacks: Mapping[int | None, CallPath]
) -> Iterator[Handoff]:
    """The handoffs of an open trace; the mappings are by the ids in it."""
    histograms = _histograms(connection, "handoff_histogram", "handoff_id", "part")
    times: dict[Key, Distribution] = {
        (number, part): Distribution(count, total_ns, max_ns, histograms[number, part])
        for number, part, count, total_ns, max_ns in connection.execute(
            "SELECT handoff_id, part, count, total_ns, max_ns FROM handoff_time"
        )
    }
    for number, kind, path, span, *sums in connection.execute(
        f"SELECT id, kind, path_id, span_id, {', '.join(HANDOFF_SUMS)} FROM handoff ORDER BY id"
    ):
        parts = (times.get((number, part), Distribution()) for part in HANDOFF_PARTS)
        yield Handoff(kind, stacks[path], spans[span], *sums, *parts)


def load_usage(connection: Connection, threads: Mapping[int, Thread]) -> Iterator[ThreadUsage]:
    """What the threads of an open trace used; the mapping is by the ids in it."""
    row = connection.execute("SELECT value FROM setting WHERE name = 'usage_width_ns'").fetchone()
    width_ns = row[0] if row else USAGE_WIDTH_NS
    timelines: dict[int, list[UsageInterval]] = defaultdict(list)
    for thread, *interval in connection.execute(
        "SELECT thread_id, start_unix_ns, cpu_ns, read_bytes, written_bytes FROM thread_timeline"
        " ORDER BY start_unix_ns"
    ):
        timelines[thread].append(UsageInterval(*interval))
    for thread, *sums in connection.execute(
        f"SELECT thread_id, {', '.join(USAGE_SUMS)} FROM thread_usage"
        " ORDER BY user_ns + system_ns DESC, thread_id"
    ):
        values: tuple[Any, ...] = (*sums, width_ns, tuple(timelines[thread]))
        yield ThreadUsage(threads[thread], *values)


def _histograms(
    connection: Connection, table: str, owner: str, figure: str
) -> Mapping[Key, dict[int, int]]:
    found: dict[Key, dict[int, int]] = defaultdict(dict)
    for number, name, bucket, count in connection.execute(
        f"SELECT {owner}, {figure}, bucket, count FROM {table}"
    ):
        found[number, name][bucket] = count
    return found
