"""Findings about foreign keys whose checks scan a table."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.marks import FEW_SCANNED_ROWS
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import counted, each_if_several, scanned_rows_in_words
from queryprof.findings.finding import Finding
from queryprof.findings.program import Program


def find_unindexed_references(program: Program) -> Iterator[Finding | None]:
    """Find writes that scan a referring table for each changed or deleted row, because of a foreign
    key without an index. The plan of the write does not show these scans.
    """
    for group in program.groups:
        read = group.totals.full_scan_steps or 0.0
        if not group.writes or read < FEW_SCANNED_ROWS:
            continue
        if any(plan_signs(plan).scans for plan in group.plans):
            continue  # find_full_scans reports it
        each = each_if_several(group.totals.executions)
        columns, code = program.planner.unindexed_references(group.statement, group.plans)
        if not columns:
            continue
        yield program.make_finding(
            "full_scan",
            group,
            group.steady_ns * (1 - 1 / read),
            (
                (
                    f"{counted(group.totals.executions, 'execution')} read"
                    f" {scanned_rows_in_words(read)}{each} to check the foreign key"
                    f" {', '.join(columns)}"
                ),
            ),
            f"Create an index on the referring column ({', '.join(columns)}): SQLite searches it"
            " for each changed or deleted row.",
            program.innermost_loop(group),
            code=code,
        )
