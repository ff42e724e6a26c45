"""Write the counters in Prometheus's formats, with its Python client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from queryprof.fleet.names import identifier
from queryprof.report.inert import escape_control_characters
from queryprof.telemetry.counters import LAG_BOUNDS_S, OTHER, MetricSeries

if TYPE_CHECKING:
    from queryprof.telemetry.counters import CallSums, ProgramNames

MAX_STATEMENT_CHARACTERS = 120
"""Maximum length of a statement's text in a label. The statement's id is computed from the complete
text.
"""

LABELS = ("statement_id", "service", "version")


COUNTERS: tuple[tuple[str, str, Callable[[CallSums], float]], ...] = (
    ("queryprof_calls", "Calls of the database driver.", lambda one: one.calls),
    ("queryprof_seconds", "Time in calls of the database driver.", lambda one: one.ns / 1e9),
    (
        "queryprof_vm_steps",
        "Steps of SQLite's virtual machine, where it counts them.",
        lambda one: one.vm_steps,
    ),
    (
        "queryprof_full_scan_steps",
        "Rows that SQLite stepped over in full scans.",
        lambda one: one.full_scan_steps,
    ),
)
"""Name, description and value of each counter."""


def exposition(counters: MetricSeries, accept: str) -> tuple[str, bytes]:
    """Return the content type and the content of a response to a scrape.

    Args:
        accept: formats that the scraper accepts, as in the HTTP header.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(counters))
    try:
        encode, content_type = choose_encoder(accept)
    except (ValueError, TypeError):  # the version in the header is not a number
        encode, content_type = choose_encoder("")
    content: bytes = encode(registry)
    return content_type, content


class _Collector:
    """Provides the metric families to the Prometheus client."""

    def __init__(self, counters: MetricSeries) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Yield all metric families."""
        rows = sorted(self._counters.sums.items())
        for name, text, value in COUNTERS:
            yield self._counter(
                name, text, [(_label_values(*key), value(sums)) for key, sums in rows]
            )
        info = InfoMetricFamily("queryprof_statement", "Texts.", labels=("statement_id",))
        for statement in sorted({key.statement for key, _ in rows}):
            text = escape_control_characters(statement)[:MAX_STATEMENT_CHARACTERS]
            info.add_metric([_statement_id(statement)], {"statement": text})
        yield info
        lag = HistogramMetricFamily(
            "queryprof_loop_lag_seconds",
            "How late event loops started due callbacks; the sum takes the middle of each bucket.",
            labels=LABELS[1:],
        )
        for program, lags in sorted(self._counters.lags.items()):
            buckets, total = [], 0
            for bound, count in zip((*LAG_BOUNDS_S, "+Inf"), lags.counts, strict=True):
                total += count
                buckets.append((str(bound), total))
            lag.add_metric(list(program), buckets, lags.sum_ns / 1e9)
        yield lag
        processes = GaugeMetricFamily(
            "queryprof_processes", "Recorded processes that run.", labels=LABELS[1:]
        )
        for program, count in sorted(self._counters.living.items()):
            processes.add_metric(list(program), count)
        yield processes

    def _counter(
        self, name: str, text: str, rows: list[tuple[list[str], float]]
    ) -> CounterMetricFamily:
        family = CounterMetricFamily(name, text, labels=LABELS)
        for labels, value in rows:
            family.add_metric(labels, value)
        return family


def _statement_id(statement: str) -> str:
    return "other" if statement == OTHER else identifier(statement)


def _label_values(program: ProgramNames, statement: str) -> list[str]:
    return [_statement_id(statement), *program]
