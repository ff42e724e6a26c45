"""Convert a profile to OpenTelemetry metrics: exponential histograms of durations, and sums.

An exponential histogram of scale 4 has 16 buckets per octave, like queryprof's histograms. The
middle of a queryprof bucket determines its exponential bucket. The result is off by at most one
bucket, which is 4.4%
(https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram). Counts, sums
and the largest value are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    ExponentialHistogramDataPoint,
    Metric,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from queryprof.analysis.histogram import bucket_bounds
from queryprof.model import Aggregate, ErrorCount, Profile
from queryprof.operations import FETCH_OPERATIONS
from queryprof.telemetry.otlp_names import (
    AttributeNames,
    common_resource,
    known_attributes,
    process_numbered,
    processes_numbered,
)
from queryprof.trace.collapsed import ALL_PROCESSES

SCALE = 4
BUCKETS = 1 << SCALE
MAX_STATEMENTS = 200
"""Maximum number of statements per process. All further statements are summed up in OTHER."""

OTHER = "(other)"
DURATION, LAG = "db.client.operation.duration", "queryprof.loop.lag"
UNITS = {
    DURATION: "s",
    LAG: "s",
    "queryprof.vm_steps": "{step}",
    "queryprof.rows": "{row}",
    "queryprof.errors": "{error}",
}


@dataclass(slots=True)
class DurationHistogram:
    """An exponential histogram of durations. `counts` maps indexes of buckets to counts, and
    `zeros` counts durations of 0 ns.
    """

    counts: dict[int, int] = field(default_factory=dict)
    zeros: int = 0
    sum_ns: int = 0
    max_ns: int = 0

    def add(self, histogram: Mapping[int, int], sum_ns: int, max_ns: int) -> None:
        """Add a queryprof histogram."""
        for bucket, count in histogram.items():
            index = exponential_bucket(bucket)
            if index is None:
                self.zeros += count
            else:
                self.counts[index] = self.counts.get(index, 0) + count
        self.sum_ns += sum_ns
        self.max_ns = max(self.max_ns, max_ns)

    def merge(self, other: DurationHistogram) -> None:
        """Add another histogram."""
        for index, count in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + count
        self.zeros += other.zeros
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)


@dataclass(slots=True)
class MetricPoint:
    """One value of a metric, for one process and set of attributes.

    Attributes:
        metric: the metric's name.
        process: the process number in the profile; ALL_PROCESSES for all together.
        value: a histogram of durations, or a count.
    """

    metric: str
    process: int
    attributes: tuple[KeyValue, ...]
    start_unix_ns: int
    end_unix_ns: int
    value: DurationHistogram | int


def exponential_bucket(bucket: int) -> int | None:
    """Return the index of the exponential bucket for a queryprof bucket; None for 0 ns."""
    low, high = bucket_bounds(bucket)
    middle_ns = (low + high) / 2 if low else 0.0
    return ceil(log2(middle_ns / 1e9) * BUCKETS) - 1 if middle_ns else None


def metric_points(profile: Profile, has_text: bool) -> list[MetricPoint]:
    """Return the metric points of a profile. `has_text` includes the texts of statements."""
    names = AttributeNames(profile, has_text)
    of_processes: dict[int, list[Aggregate]] = {}
    for one in profile.aggregates:
        of_processes.setdefault(one.thread.process_id, []).append(one)
    found: list[MetricPoint] = []
    for number, aggregates in sorted(of_processes.items()):
        times = _start_and_end_ns(profile, number)
        for statement, some in _group_by_statement(aggregates):
            path = max(some, key=lambda one: one.self_ns).path
            tags = tuple(known_attributes(names.statement_attributes(statement, path)))
            found += [
                MetricPoint(metric, number, tags, *times, value)
                for metric, value in _metric_values(some)
            ]
    errors: dict[tuple[str, str], list[ErrorCount]] = {}
    for error in profile.errors:
        errors.setdefault((error.statement, error.exception), []).append(error)
    for (statement, exception), several in errors.items():
        path = max(several, key=lambda one: one.count).path
        of_statement = names.statement_attributes(statement, path)
        tags = tuple(known_attributes({**of_statement, "error.type": exception}))
        count = sum(one.count for one in several)
        found.append(
            MetricPoint(
                "queryprof.errors",
                ALL_PROCESSES,
                tags,
                *_start_and_end_ns(profile, ALL_PROCESSES),
                count,
            )
        )
    for loop in profile.loops:
        durations = DurationHistogram()
        for lag in (loop.timer_lag, loop.beat_lag):
            durations.add(lag.histogram, lag.total_ns, lag.max_ns)
        if durations.counts or durations.zeros:
            number = loop.thread.process_id
            tags = tuple(
                known_attributes({"queryprof.loop": loop.kind, "thread.name": loop.thread.name})
            )
            found.append(
                MetricPoint(LAG, number, tags, *_start_and_end_ns(profile, number), durations)
            )
    return found


def _start_and_end_ns(profile: Profile, number: int) -> tuple[int, int]:
    process = process_numbered(profile, number)
    start, end = (
        (process.recorded_unix_ns, process.end_unix_ns) if process else profile.span_unix_ns
    )
    return start, max(start + 1, end)


def _group_by_statement(aggregates: Sequence[Aggregate]) -> list[tuple[str, list[Aggregate]]]:
    """Group aggregates by statement, most time first. Statements beyond MAX_STATEMENTS form the
    group OTHER.
    """
    groups: dict[str, list[Aggregate]] = {}
    for one in aggregates:
        groups.setdefault(one.statement, []).append(one)
    ranked = sorted(groups.items(), key=lambda one: (-sum(a.self_ns for a in one[1]), one[0]))
    rest = [one for _, some in ranked[MAX_STATEMENTS:] for one in some]
    return [*ranked[:MAX_STATEMENTS], *([(OTHER, rest)] if rest else [])]


def _metric_values(
    aggregates: Sequence[Aggregate],
) -> Iterable[tuple[str, DurationHistogram | int]]:
    durations = DurationHistogram()
    for one in aggregates:
        durations.add(one.histogram, one.total_ns, one.execution_max_ns)
    if durations.counts or durations.zeros:
        yield DURATION, durations
    if any(one.counted for one in aggregates):
        yield "queryprof.vm_steps", sum(one.vm_steps for one in aggregates)
    if any(one.rows or one.operation in FETCH_OPERATIONS for one in aggregates):
        yield "queryprof.rows", sum(one.rows for one in aggregates)


def metrics_request(
    points: Sequence[MetricPoint], resources: Mapping[int, Resource], is_cumulative: bool
) -> ExportMetricsServiceRequest:
    """Return metric points as an OTLP request."""
    request = ExportMetricsServiceRequest()
    temporality = (
        AGGREGATION_TEMPORALITY_CUMULATIVE if is_cumulative else AGGREGATION_TEMPORALITY_DELTA
    )
    metrics: dict[tuple[int, str], Metric] = {}
    scopes = {}
    for point in points:
        if point.process not in scopes:
            of_resource = request.resource_metrics.add()
            of_resource.resource.CopyFrom(resources[point.process])
            scopes[point.process] = of_resource.scope_metrics.add()
            scopes[point.process].scope.name = "queryprof"
        key = point.process, point.metric
        metric = metrics.get(key)
        if metric is None:
            metric = metrics[key] = scopes[point.process].metrics.add()
            metric.name, metric.unit = point.metric, UNITS[point.metric]
        if isinstance(point.value, DurationHistogram):
            metric.exponential_histogram.aggregation_temporality = temporality
            _fill_histogram(metric.exponential_histogram.data_points.add(), point, point.value)
        else:
            metric.sum.aggregation_temporality = temporality
            metric.sum.is_monotonic = True
            number = metric.sum.data_points.add()
            _set_attributes(number, point)
            number.as_int = point.value
    return request


def _fill_histogram(
    to: ExponentialHistogramDataPoint, point: MetricPoint, durations: DurationHistogram
) -> None:
    _set_attributes(to, point)
    to.scale = SCALE
    to.zero_count = durations.zeros
    to.count = sum(durations.counts.values()) + durations.zeros
    to.sum = durations.sum_ns / 1e9
    to.max = durations.max_ns / 1e9
    if durations.counts:
        first, last = min(durations.counts), max(durations.counts)
        to.positive.offset = first
        counts = [durations.counts.get(index, 0) for index in range(first, last + 1)]
        to.positive.bucket_counts.extend(counts)


def _set_attributes(
    to: ExponentialHistogramDataPoint | NumberDataPoint, point: MetricPoint
) -> None:
    to.attributes.extend(point.attributes)
    to.start_time_unix_nano = point.start_unix_ns
    to.time_unix_nano = point.end_unix_ns


def resources_by_process(profile: Profile) -> dict[int, Resource]:
    """Return the OpenTelemetry resource of each process by its number. ALL_PROCESSES has the
    resource of all processes together.
    """
    numbers = {ALL_PROCESSES, *(one.thread.process_id for one in profile.aggregates)}
    numbers |= {loop.thread.process_id for loop in profile.loops}
    numbers |= {one.id for one in profile.processes}
    numbers |= {span.thread.process_id for span in profile.slow_spans}
    return {number: common_resource(processes_numbered(profile, number)) for number in numbers}
