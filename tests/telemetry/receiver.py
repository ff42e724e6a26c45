"""An endpoint of the OpenTelemetry protocol that keeps everything it receives."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from queryprof.telemetry.otlp_sending import EndpointSettings, OtlpSender

REQUESTS = {
    "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
    "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
}


@dataclass
class Receiver:
    """The messages that an endpoint received, and its answers: the statuses in turn, then 200."""

    url: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    answer: bytes = b""

    @property
    def metrics(self) -> list[Any]:
        return [
            metric
            for path, request in self.requests
            if path == "/v1/metrics"
            for of_resource in request.resource_metrics
            for scope in of_resource.scope_metrics
            for metric in scope.metrics
        ]

    def points(self, name: str) -> list[Any]:
        return [
            point
            for metric in self.metrics
            if metric.name == name
            for point in (
                metric.exponential_histogram.data_points
                if metric.HasField("exponential_histogram")
                else metric.sum.data_points
            )
        ]

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for path, request in self.requests
            if path == "/v1/traces"
            for of_resource in request.resource_spans
            for scope in of_resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = found.statuses.pop(0) if found.statuses else (200, {})
            if status == 200:
                request = REQUESTS[self.path]()
                request.ParseFromString(gzip.decompress(content))
                found.requests.append((self.path, request))
                found.headers.append(dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found.answer if status == 200 else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def values(point: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in point.attributes}


def sender(url: str, **settings: Any) -> tuple[OtlpSender, list[str], list[float]]:
    notes: list[str] = []
    waits: list[float] = []
    return OtlpSender(EndpointSettings(url, **settings), notes.append, waits.append), notes, waits
