"""The summary of a pytest run: the tests with most queries, and what is suspicious in them.

The figures of tests are plain data, from their reports (recorder.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from queryprof.analysis.baseline_rules import REPEATS
from queryprof.analysis.units import duration
from queryprof.report.inert import visible

SHOWN = 5
"""Lines of each kind."""

Calls = Mapping[str, Mapping[str, Any]]
"""Test -> the figures of its call."""


def write_most(out: pytest.TerminalReporter, calls: Calls, fixtures: Mapping[str, int]) -> None:
    """Writes the tests with most executions, and those with most database time."""
    by_count = sorted(calls.items(), key=lambda item: -item[1]["executions"])
    by_time = sorted(calls.items(), key=lambda item: -item[1]["database_ns"])
    write_line(out, "most executions (and in its fixtures)")
    for nodeid, found in by_count[:SHOWN]:
        if found["executions"]:
            before = fixtures.get(nodeid, 0)
            write_line(out, f"  {found['executions']:>7,}  (+{before:,})  {nodeid}")
    write_line(out, "most database time")
    for nodeid, found in by_time[:SHOWN]:
        if found["database_ns"]:
            write_line(out, f"  {duration(found['database_ns']):>8}  {nodeid}")


def write_signs(out: pytest.TerminalReporter, calls: Calls) -> None:
    """Writes repeated statements, stalled event loops, scans of large tables."""
    repeated = [
        (times, statement, place, nodeid)
        for nodeid, found in calls.items()
        for statement, times, place in found["repeated"]
    ]
    if repeated:
        write_line(out, f"repeated more than {REPEATS} times from one line (a query in a loop?)")
    for times, statement, place, nodeid in sorted(repeated, reverse=True)[:SHOWN]:
        write_line(out, f"  {times:>7,} x {statement[:200]}")
        write_line(out, f"            {place}  in {nodeid}")
    stalls = [(ns, line, t) for t, found in calls.items() for ns, line in found["stalls"]]
    if stalls:
        write_line(out, "stalled event loops, the longest stall of each")
    for ns, line, nodeid in sorted(stalls, reverse=True)[:SHOWN]:
        write_line(out, f"  {duration(ns):>8}  {line}  in {nodeid}")
    scans = [(s, nodeid) for nodeid, found in calls.items() for s in found["scans"]]
    if scans:
        write_line(out, "full scans of large tables")
    for (statement, tables), nodeid in scans[:SHOWN]:
        of = f" of {tables}" if tables else ""
        write_line(out, f"  {statement[:200]}{of}  in {nodeid}")


def write_causes(out: pytest.TerminalReporter, calls: Calls) -> None:
    """Writes why tests failed against the baseline: a cause of many tests once."""
    if not any(found["causes"] for found in calls.values()):
        return
    from queryprof.report.text.causes import Cause, cause_lines

    causes = [
        (nodeid, Cause(statement, tuple(reasons), tuple(why), tuple(place)))
        for nodeid, found in calls.items()
        for statement, reasons, why, place in found["causes"]
    ]
    write_line(out, "more than in the baseline")
    for line in cause_lines(causes):
        write_line(out, f"  {line}")
    write_line(
        out, "if that is meant, accept it: pytest --queryprof-save (and commit the baseline)"
    )


def write_line(out: pytest.TerminalReporter, line: str, **markup: bool) -> None:
    """Writes one line of the summary, with control characters of names escaped."""
    out.write_line(visible(line), **markup)
