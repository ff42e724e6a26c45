"""Profiles made by hand, and functions that check reports of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.model import Aggregate, CallPath, Frame, Process, Profile, Thread
from queryprof.report.json.report import json_report

GOLDEN = Path(__file__).parent.parent / "golden"
WRITE = os.environ.get("QUERYPROF_GOLDEN") == "write"

MAIN = Frame("main", "/app/main.py", 10)
QUERY = Frame("query", "/app/db.py", 3)


def process(number: int = 1, **changes: object) -> Process:
    values = {
        "id": number,
        "pid": 100 + number,
        "parent_pid": 1,
        "host": "h",
        "argv": ("python", "app.py"),
        "directory": "/app",
        "python_version": "3.11",
        "sqlite_version": "3.40",
        "queryprof_version": "0",
        "start_unix_ns": 0,
        "end_unix_ns": 10**9,
        "clean_end": True,
        "clock": "time-stamp counter",
        "rows_estimated": False,
        "counters_off": None,
        "flush_ns": 1000,
        "folded_statements": 0,
        "folded_calls": 0,
        "lost_counters": 0,
        "unasked_plans": 0,
        "read_bytes": 1000,
        "written_bytes": 500,
        "clock_tick_ns": 0.5,
        "files_off": None,
        "unseen_files": 0,
        "unmeasured": (),
    }
    return Process(**{**values, **changes})  # type: ignore[arg-type]


def aggregate(
    statement: str,
    path: CallPath = (MAIN,),
    ns: int = 100,
    operation: str = "execute",
    count: int = 1,
    span: str = "",
) -> Aggregate:
    began = operation == "execute"
    return Aggregate(
        statement,
        path,
        span,
        Thread(1, "MainThread"),
        operation,
        count,
        0,
        0,
        ns,
        ns,
        ns // count,
        ns // count,
        ns // count if began else 0,
        0.0,
        counted=count if began else 0,
        vm_steps=5 * count if began else 0,
        histogram={histogram_bucket(ns // count): count} if began else {},
    )


def profile_of(*aggregates: Aggregate) -> Profile:
    return Profile((process(),), aggregates)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if WRITE:
        path.write_text(text)
    assert path.read_text() == text, "a wanted change: QUERYPROF_GOLDEN=write, then read the diff"


def json_of(report: Report, dimension: str | None = None) -> dict[str, Any]:
    """Return the JSON report as a parsed document."""
    document: dict[str, Any] = json.loads("".join(json_report(report, dimension)))
    return document
