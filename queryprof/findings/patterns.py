"""Findings about pattern searches that no index helps."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.marks import SCAN
from queryprof.analysis.units import average, counted, rows_of_scan
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.program import Program
from queryprof.findings.work import groups_with_mark, step_of


def open_pattern(program: Program) -> Iterator[Finding | None]:
    """Find scans for patterns that begin with a wildcard, if the statement compares nothing else
    for which an index would help.
    """
    for group in groups_with_mark(program, SCAN):
        totals, served = group.totals, program.served(group)
        has_index = served and (served.is_other or (served.code and not served.by_prefix))
        if group.share_of_wildcards != 1.0 or has_index:
            continue
        yield program.finding(
            "full_scan",
            group,
            group.steady_ns,
            (
                (
                    f"{counted(totals.executions, 'execution')} read"
                    f" {rows_of_scan(totals.full_scan_steps or 0)} each to return"
                    f" {average(totals.rows_each or 0.0)}"
                ),
                step_of(group, SCAN),
                "its patterns begin with a wildcard",
            ),
            "An index cannot find a pattern that begins with a wildcard. A full-text table"
            " (FTS5) finds words, and with tokenize='trigram' parts of words.",
            program.loop_of(group),
            doubt="The gain of a full-text table is not measured.",
            most=Severity.LOW,
        )
