"""Convert the slowest spans of a profile to OpenTelemetry traces.

Each slow span becomes a server span, and its database calls become client spans below it. Ids are
hashes of process, time and name, so sending a span twice produces the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from queryprof.model import Profile, SlowSpan, SpanRun
from queryprof.telemetry.otlp_names import AttributeNames, known_attributes, process_numbered

FIRST_ERROR = 500
"""This HTTP status code and all higher codes are server errors."""


@dataclass(frozen=True, slots=True)
class ProcessSpan:
    """An OpenTelemetry span with the number of its process."""

    process: int
    span: trace_pb2.Span


def slow_process_spans(profile: Profile, has_text: bool) -> list[ProcessSpan]:
    """Return a span for each slow span, and one for each run of calls in it."""
    names = AttributeNames(profile, has_text)
    return [
        ProcessSpan(slow.thread.process_id, one)
        for slow in profile.slow_spans
        for one in _slow_span_and_runs(profile, slow, names)
    ]


def _slow_span_and_runs(
    profile: Profile, slow: SlowSpan, names: AttributeNames
) -> list[trace_pb2.Span]:
    process = process_numbered(profile, slow.thread.process_id)
    whose = (process.host, process.pid, process.start_unix_ns) if process else ("", 0, 0)
    text = f"{whose} {slow.started_unix_ns} {slow.thread.name} {slow.name}"
    seed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    root = trace_pb2.Span(
        trace_id=seed[:16],
        span_id=seed[16:24],
        name=_escaped_text(slow.name),
        kind=trace_pb2.Span.SPAN_KIND_SERVER,
        start_time_unix_nano=slow.started_unix_ns,
        end_time_unix_nano=slow.started_unix_ns + slow.duration_ns,
        attributes=known_attributes(
            {
                "http.response.status_code": slow.status,
                "thread.name": slow.thread.name,
                "queryprof.executions": slow.executions,
                "queryprof.database_ns": slow.database_ns,
            }
        ),
    )
    if slow.failed or (slow.status or 0) >= FIRST_ERROR:
        root.status.code = trace_pb2.Status.STATUS_CODE_ERROR
    runs = [
        _run_span(root, slow, run, hashlib.sha256(seed + number.to_bytes(4)).digest()[:8], names)
        for number, run in enumerate(slow.runs)
    ]
    return [root, *runs]


def _run_span(
    root: trace_pb2.Span, slow: SlowSpan, run: SpanRun, span_id: bytes, names: AttributeNames
) -> trace_pb2.Span:
    of_statement = names.statement_attributes(run.statement, run.path)
    start = slow.started_unix_ns + run.start_ns
    many = run.executions if run.executions > 1 else None
    return trace_pb2.Span(
        trace_id=root.trace_id,
        span_id=span_id,
        parent_span_id=root.span_id,
        name=_escaped_text(str(of_statement["db.query.summary"] or run.operation)),
        kind=trace_pb2.Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=start,
        end_time_unix_nano=max(start, slow.started_unix_ns + run.end_ns),
        attributes=known_attributes(
            {
                **of_statement,
                "db.operation.name": run.operation,
                "db.operation.batch.size": many,
                "queryprof.rows": run.rows,
                "queryprof.self_ns": run.self_ns,
                "thread.name": run.thread.name,
            }
        ),
    )


def _escaped_text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def traces_request(
    spans: Sequence[ProcessSpan], resources: Mapping[int, Resource]
) -> ExportTraceServiceRequest:
    """Return spans as an OTLP request."""
    request = ExportTraceServiceRequest()
    scopes = {}
    for one in spans:
        if one.process not in scopes:
            of_resource = request.resource_spans.add()
            of_resource.resource.CopyFrom(resources[one.process])
            scopes[one.process] = of_resource.scope_spans.add()
            scopes[one.process].scope.name = "queryprof"
        scopes[one.process].spans.append(one.span)
    return request
