"""Findings about virtual tables, which cannot have an index on a column."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import average, counted, each_if_several
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.finding import Finding
from queryprof.findings.indexes import uses_excess_vm_steps
from queryprof.findings.program import Program


def find_full_text_scans(program: Program) -> Iterator[Finding | None]:
    """Find scans of full-text tables: INDEX 0 is a scan (https://www.sqlite.org/fts5.html)."""
    for group in program.groups:
        totals = group.totals
        scans = [
            step.strip()
            for plan in group.plans
            for step in plan
            if step.strip().endswith("VIRTUAL TABLE INDEX 0:")
        ]
        if (
            scans
            and group.clauses.chooses
            and uses_excess_vm_steps(totals.vm_steps, totals.rows_each or 0.0)
        ):
            yield program.make_finding(
                "full_scan",
                group,
                group.steady_ns * (1 - ((totals.rows_each or 0.0) + 1) / (totals.vm_steps or 1.0)),
                (
                    (
                        f"{counted(totals.executions, 'execution')} took {average(totals.vm_steps)}"
                        f" VM steps{each_if_several(totals.executions)} to return"
                        f" {rows_of(totals.rows_each or 0)}"
                    ),
                    scans[0],
                ),
                "A virtual table has no index on a column. Search a full-text table by its rowid,"
                " or with MATCH (WHERE table MATCH 'column:word'; it finds nothing in UNINDEXED"
                " columns). Or keep the column in an ordinary table.",
                program.innermost_loop(group),
            )
