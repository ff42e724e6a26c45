"""The record of a test: figures of its statements, and suspicious signs."""

from __future__ import annotations

from queryprof.analysis.baseline_rules import REPEATS
from queryprof.comparing.baseline_figures import (
    StatementFigures,
    figures_to_baseline,
    fold_statement_names,
)
from queryprof.report.text.failures import stall_line
from queryprof.testing.calls import Calls
from queryprof.testing.suite_baseline import SILENT, TestRecord


def record_of(calls: Calls) -> TestRecord:
    """Return the sums of a test."""
    return {
        **SILENT,
        "executions": sum(part.executions for part in calls.parts),
        "database_ns": sum(part.database_ns for part in calls.parts),
    }


def describe(record: TestRecord, calls: Calls, stall_ms: float) -> dict[str, StatementFigures]:
    """Add suspicious signs to a record, and return the figures.

    The figures have call sites only if a statement is repeated.
    """
    figures = calls.figures(with_sites=False)
    if any(one.executions > REPEATS for one in figures.values()):
        figures = calls.figures()
    record["repeated"] = [
        (
            statement,
            site.executions,
            f"{site.frame.function} {site.frame.file}:{site.frame.line}",
        )
        for statement, one in figures.items()
        for site in one.sites
        if site.executions > REPEATS and site.frame
    ]
    record["stalls"] = [
        (step.durations.max_ns, stall_line(step)) for step in calls.longer_than(stall_ms)
    ]
    record["scans"] = [
        (statement, ", ".join(one.scanned_tables))
        for statement, one in figures.items()
        if one.scans_a_large_table
    ]
    return figures


def add_statements(record: TestRecord, figures: dict[str, StatementFigures]) -> None:
    """Add the figures that a baseline keeps to a record."""
    record["statements"] = figures_to_baseline(fold_statement_names(figures))
