"""Export trace events, for chrome://tracing, Perfetto and speedscope.

The file has the slowest executions by thread, and the timeline as counters (Google's Trace Event
Format). Times are in us.
"""

from __future__ import annotations

import json
from typing import Any

from queryprof.analysis.timeline import timeline_of
from queryprof.model import Exemplar, Profile, Thread
from queryprof.report.inert import visible
from queryprof.report.places import Places
from queryprof.version import __version__

MARK = b'{"otherData":{"exporter":"queryprof '
INTERVALS = 512


def trace_events_file(profile: Profile) -> bytes:
    """Return the file; times count from the start of the run."""
    places = Places(profile)
    start_ns, _ = profile.span_unix_ns
    pids = {process.id: process.pid for process in profile.processes}
    threads: dict[Thread, int] = {}
    events: list[dict[str, Any]] = []
    for one in sorted(profile.exemplars, key=lambda one: one.started_unix_ns):
        number = threads.setdefault(one.thread, len(threads) + 1)
        events.append(
            {
                "ph": "X",
                "name": visible(one.statement[:200]),
                "cat": "sql",
                "tid": number,
                "pid": pids.get(one.thread.process_id, 0),
                "ts": (one.started_unix_ns - start_ns) / 1000,
                "dur": one.duration_ns / 1000,
                "args": _arguments(one, places),
            }
        )
    for thread, number in threads.items():
        events.append(
            {
                "ph": "M",
                "name": "thread_name",
                "pid": pids.get(thread.process_id, 0),
                "tid": number,
                "args": {"name": visible(thread.name)},
            }
        )
    first = next(iter(pids.values()), 0)
    for moment in timeline_of(profile, INTERVALS).moments:
        for name, figures in (
            ("database", {"busy percent": round(moment.busy * 100, 2)}),
            ("calls a second", {"calls": round(moment.calls_per_s)}),
        ):
            events.append(
                {
                    "ph": "C",
                    "name": name,
                    "pid": first,
                    "tid": 0,
                    "ts": moment.start_ns / 1000,
                    "args": figures,
                }
            )
    # First, because the beginning identifies the file as ours.
    exporter = {"exporter": f"queryprof {__version__}"}
    document = {"otherData": exporter, "displayTimeUnit": "ms", "traceEvents": events}
    return json.dumps(document, separators=(",", ":")).encode()


def _arguments(one: Exemplar, places: Places) -> dict[str, Any]:
    stack = [visible(places.frame(frame)) for frame in one.stack or one.path]
    known = {"span": one.span, "sql": one.sql, "parameters": one.parameters}
    return {
        "operation": one.operation,
        "rows": one.rows,
        "stack": stack,
        **{name: visible(value) for name, value in known.items() if value},
    }
