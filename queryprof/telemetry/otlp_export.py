"""Sends profiles to an endpoint of OTLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from google.protobuf.message import Message
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from queryprof.model import Profile
from queryprof.telemetry.otlp_metrics import (
    Durations,
    Point,
    metrics_request,
    points_of,
    resources_of,
)
from queryprof.telemetry.otlp_sending import Sender
from queryprof.telemetry.otlp_traces import OfProcess, spans_of, traces_request


class Sent(NamedTuple):
    """How many values and spans were sent, in how many bytes."""

    points: int = 0
    spans: int = 0
    bytes: int = 0


class OtlpExport:
    """Sends profiles, one after the other.

    Args:
        has_text: whether statements' texts are sent.
        is_cumulative: each value is that of all profiles so far; else that of one.
    """

    def __init__(self, sender: Sender, has_text: bool, is_cumulative: bool) -> None:
        self._sender = sender
        self._has_text = has_text
        self._is_cumulative = is_cumulative
        self._sums: dict[bytes, Point] = {}

    def send(self, profile: Profile) -> Sent:
        """Sends a profile. Raises OtlpError: the endpoint does not take it."""
        resources = resources_of(profile)
        points = points_of(profile, self._has_text)
        keys = [_key(resources[point.process], point) for point in points]
        if self._is_cumulative:
            points = [
                _joined(self._sums.get(key), one) for key, one in zip(keys, points, strict=True)
            ]
        spans = spans_of(profile, self._has_text)

        def of_points(some: Sequence[Point]) -> Message:
            return metrics_request(some, resources, self._is_cumulative)

        def of_spans(some: Sequence[OfProcess]) -> Message:
            return traces_request(some, resources)

        sent_bytes = self._sender.send("/v1/metrics", points, of_points)
        if self._is_cumulative:
            self._sums.update(zip(keys, points, strict=True))
        sent_bytes += self._sender.send("/v1/traces", spans, of_spans)
        return Sent(len(points), len(spans), sent_bytes)


def _key(resource: Resource, point: Point) -> bytes:
    parts = [resource, *point.attributes]
    found = b"\0".join(one.SerializeToString(deterministic=True) for one in parts)
    return point.metric.encode() + b"\0" + found


def _joined(before: Point | None, point: Point) -> Point:
    """A value with what came before it."""
    if before is None:
        return point
    start = min(before.start_unix_ns, point.start_unix_ns)
    end = max(before.end_unix_ns, point.end_unix_ns)
    if isinstance(point.value, Durations) and isinstance(before.value, Durations):
        value = Durations()
        value.join(before.value)
        value.join(point.value)
        return replace(point, start_unix_ns=start, end_unix_ns=end, value=value)
    if isinstance(point.value, int) and isinstance(before.value, int):
        total = before.value + point.value
        return replace(point, start_unix_ns=start, end_unix_ns=end, value=total)
    return point
