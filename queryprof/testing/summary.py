"""The summary of a test run: tests with the most queries, suspicious signs, the baseline.

The figures of tests are plain data (suite_baseline.TestRecord).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from queryprof.analysis.baseline_rules import REPEATS
from queryprof.analysis.units import counted, duration
from queryprof.testing.suite_baseline import SuiteBaseline

SHOWN = 5
"""Maximum lines of each kind."""

Calls = Mapping[str, Mapping[str, Any]]
"""The record of each test."""


def most_lines(
    calls: Calls, fixtures: Mapping[str, int] | None, lacks_failed: bool = False
) -> Iterator[str]:
    """Yield the tests with the most executions, and the tests with the most database time.

    Executions in fixtures are shown if known. `lacks_failed`: the calls of failed tests are
    missing.
    """
    if not any(found["executions"] for found in calls.values()):
        yield f"No {'passed ' * lacks_failed}test called a database."
        return
    by_count = sorted(calls.items(), key=lambda item: -item[1]["executions"])
    by_time = sorted(calls.items(), key=lambda item: -item[1]["database_ns"])
    yield "most executions" + " (and in its fixtures)" * (fixtures is not None)
    for nodeid, found in by_count[:SHOWN]:
        if found["executions"]:
            before = "" if fixtures is None else f"(+{fixtures.get(nodeid, 0):,})  "
            yield f"  {found['executions']:>7,}  {before}{nodeid}"
    yield "most database time"
    for nodeid, found in by_time[:SHOWN]:
        if found["database_ns"]:
            yield f"  {duration(found['database_ns']):>8}  {nodeid}"


def sign_lines(calls: Calls) -> Iterator[str]:
    """Yield repeated statements, stalled event loops, and scans of large tables."""
    repeated = [
        (times, statement, place, nodeid)
        for nodeid, found in calls.items()
        for statement, times, place in found["repeated"]
    ]
    if repeated:
        yield f"repeated more than {REPEATS} times from one line (a query in a loop?)"
    for times, statement, place, nodeid in sorted(repeated, reverse=True)[:SHOWN]:
        yield f"  {times:>7,} x {statement[:200]}"
        yield f"            {place}  in {nodeid}"
    stalls = [(ns, line, t) for t, found in calls.items() for ns, line in found["stalls"]]
    if stalls:
        yield "stalled event loops, the longest stall of each"
    for ns, line, nodeid in sorted(stalls, reverse=True)[:SHOWN]:
        yield f"  {duration(ns):>8}  {line}  in {nodeid}"
    scans = [(s, nodeid) for nodeid, found in calls.items() for s in found["scans"]]
    if scans:
        yield "full scans of large tables"
    for (statement, tables), nodeid in scans[:SHOWN]:
        of = f" of {tables}" if tables else ""
        yield f"  {statement[:200]}{of}  in {nodeid}"


def why_lines(calls: Calls, save: str) -> Iterator[str]:
    """Yield why tests failed against the baseline, listing each cause once with its plans.

    Args:
        save: the command that saves the baseline.
    """
    if not any(found["causes"] for found in calls.values()):
        return
    from queryprof.report.text.causes import WorseStatement, cause_lines

    causes = [
        (nodeid, WorseStatement(statement, tuple(reasons), tuple(why), tuple(place)))
        for nodeid, found in calls.items()
        for statement, reasons, why, place in found["causes"]
    ]
    yield "more than in the baseline"
    yield from (f"  {line}" for line in cause_lines(causes))
    yield f"to accept this, run {save} and commit the baseline"


NO_TEST_FOUND = "no test was found: this check checked nothing"


NOTHING_SEEN = "nothing was measured, though the baseline has queries: this check checked nothing"


NOTHING_COMPARED = (
    "no test of this run is in the baseline (wrong file?): this check compared nothing"
)


def baseline_lines(baseline: SuiteBaseline, calls: Calls, save: str) -> Iterator[str]:
    """Yield the result of the comparison with the baseline; for `save` see why_lines."""
    worse = sum(bool(found["causes"]) for found in calls.values())
    if number := baseline.compared(calls):
        is_or_are = "is" if worse == 1 else "are"
        yield (
            f"{counted(number, 'test')} compared with the baseline: {worse or 'none'}"
            f" {is_or_are} worse"
        )
    if worse and (line := baseline.other_versions()):
        yield line
    better = sum(found["is_better"] for found in calls.values())
    new = sum(found["is_new"] for found in calls.values())
    if better:
        yield (
            f"{counted(better, 'test')} better than the baseline; update the baseline with: {save}"
        )
    if new:
        yield f"{counted(new, 'test')} not in the baseline; add new tests with: {save}"
