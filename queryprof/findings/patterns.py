"""Findings about pattern searches that no index helps."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.marks import SCAN
from queryprof.analysis.units import average, counted, each_if_several, scanned_rows_in_words
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.program import Program
from queryprof.findings.work import groups_with_mark, marked_plan_step


def find_leading_wildcard_scans(program: Program) -> Iterator[Finding | None]:
    """Find scans for patterns that begin with a wildcard, if the statement compares nothing else
    for which an index would help.
    """
    for group in groups_with_mark(program, SCAN):
        totals, index_help = group.totals, program.index_help(group)
        has_index = index_help and (
            index_help.is_other or (index_help.code and not index_help.by_prefix)
        )
        if group.wildcard_share != 1.0 or has_index:
            continue
        yield program.make_finding(
            "full_scan",
            group,
            group.steady_ns,
            (
                (
                    f"{counted(totals.executions, 'execution')} read"
                    f" {scanned_rows_in_words(totals.full_scan_steps or 0)}"
                    f"{each_if_several(totals.executions)} to return"
                    f" {average(totals.rows_each or 0.0)}"
                ),
                marked_plan_step(group, SCAN),
                "its patterns begin with a wildcard",
            ),
            "An index cannot find a pattern that begins with a wildcard. A full-text table"
            " (FTS5) finds words, and with tokenize='trigram' parts of words.",
            program.innermost_loop(group),
            doubt="The gain of a full-text table is not measured.",
            most=Severity.LOW,
        )
