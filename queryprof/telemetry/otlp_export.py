"""Send profiles to an OTLP (OpenTelemetry Protocol) endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from google.protobuf.message import Message
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from queryprof.errors import TraceError
from queryprof.model import Profile
from queryprof.telemetry.otlp_metrics import (
    DurationHistogram,
    MetricPoint,
    metric_points,
    metrics_request,
    resources_by_process,
)
from queryprof.telemetry.otlp_sending import (
    MAX_ITEMS,
    NOTHING,
    DeliveredMessages,
    OtlpSender,
    RejectedError,
)
from queryprof.telemetry.otlp_traces import ProcessSpan, slow_process_spans, traces_request


class SentCounts(NamedTuple):
    """The numbers of sent metric points, spans and bytes."""

    points: int = 0
    spans: int = 0
    bytes: int = 0


class OtlpExport:
    """Sends profiles to one endpoint.

    Args:
        has_text: send the texts of statements.
        is_cumulative: send the sums over all profiles so far, not only the values of the current
            profile.
    """

    def __init__(self, sender: OtlpSender, has_text: bool, is_cumulative: bool) -> None:
        self._sender = sender
        self._has_text = has_text
        self._is_cumulative = is_cumulative
        self._sums: dict[bytes, MetricPoint] = {}

    def send(self, profile: Profile, delivered: DeliveredMessages = NOTHING) -> SentCounts:
        """Send a profile.

        Args:
            delivered: the messages of this profile that the endpoint accepted in an earlier try.

        Raises:
            OtlpError: the endpoint is unavailable or rejects a message. `delivered` records the
                accepted messages.
            TraceError: the profile has figures that OTLP cannot represent.
        """
        try:
            return self._send(profile, delivered)
        except (ValueError, OverflowError) as error:
            raise TraceError(f"its figures cannot be sent: {error}") from error

    def _send(self, profile: Profile, delivered: DeliveredMessages) -> SentCounts:
        resources = resources_by_process(profile)
        points, spans = (
            metric_points(profile, self._has_text),
            slow_process_spans(profile, self._has_text),
        )
        sent_bytes, rejection = 0, None
        try:
            sent_bytes = self._send_points(points, resources, delivered)
        except RejectedError as error:  # the endpoint may still accept spans
            rejection = error
        sent_bytes += self._send_spans(spans, resources, delivered)
        if rejection:
            raise rejection
        return SentCounts(len(points), len(spans), sent_bytes)

    def _send_points(
        self,
        points: Sequence[MetricPoint],
        resources: Mapping[int, Resource],
        delivered: DeliveredMessages,
    ) -> int:
        def request(some: Sequence[MetricPoint]) -> Message:
            return metrics_request(some, resources, self._is_cumulative)

        sent_bytes = 0
        for at in range(0, len(points), MAX_ITEMS):
            name = f"metrics-{at}"
            if not delivered.has(name):
                some = points[at : at + MAX_ITEMS]
                sums = self._add_earlier(some, resources) if self._is_cumulative else {}
                sent_bytes += self._sender.send(
                    "/v1/metrics", [*sums.values()] or some, request, delivered, name
                )
                self._sums.update(sums)
                delivered.add(name)
        return sent_bytes

    def _send_spans(
        self,
        spans: Sequence[ProcessSpan],
        resources: Mapping[int, Resource],
        delivered: DeliveredMessages,
    ) -> int:
        def request(some: Sequence[ProcessSpan]) -> Message:
            return traces_request(some, resources)

        sent_bytes = 0
        for at in range(0, len(spans), MAX_ITEMS):
            name = f"traces-{at}"
            if not delivered.has(name):
                sent_bytes += self._sender.send(
                    "/v1/traces", spans[at : at + MAX_ITEMS], request, delivered, name
                )
                delivered.add(name)
        return sent_bytes

    def _add_earlier(
        self, points: Sequence[MetricPoint], resources: Mapping[int, Resource]
    ) -> dict[bytes, MetricPoint]:
        """Add earlier values to points with the same metric, process and attributes. Return the
        sums by this key.
        """
        found: dict[bytes, MetricPoint] = {}
        for point in points:
            key = _point_key(resources[point.process], point)
            found[key] = _add_point(found.get(key) or self._sums.get(key), point)
        return found


def _point_key(resource: Resource, point: MetricPoint) -> bytes:
    parts = [resource, *point.attributes]
    found = b"\0".join(one.SerializeToString(deterministic=True) for one in parts)
    return point.metric.encode() + b"\0" + found


def _add_point(before: MetricPoint | None, point: MetricPoint) -> MetricPoint:
    """Return the sum of a point and the earlier point."""
    if before is None:
        return point
    start = min(before.start_unix_ns, point.start_unix_ns)
    end = max(before.end_unix_ns, point.end_unix_ns)
    if isinstance(point.value, DurationHistogram) and isinstance(before.value, DurationHistogram):
        value = DurationHistogram()
        value.merge(before.value)
        value.merge(point.value)
        return replace(point, start_unix_ns=start, end_unix_ns=end, value=value)
    if isinstance(point.value, int) and isinstance(before.value, int):
        total = before.value + point.value
        return replace(point, start_unix_ns=start, end_unix_ns=end, value=total)
    return point
