"""Scans that a write causes indirectly: by a trigger, or by a foreign key that refers to it."""

from __future__ import annotations

from queryprof.analysis.baseline_rules import SCANNED_ROWS
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import each_of_in_words, scanned_rows_in_words
from queryprof.findings.finding import Finding
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.findings.triggers import fired_triggers_in_words
from queryprof.sql.tokens import tokens_of

CHANGES = frozenset({"DELETE", "UPDATE"})
"""Statements whose changed or deleted rows a foreign key may check."""

BY_TRIGGER = (
    "A trigger on the written table, or a foreign key that refers to it, scans a table. Let the"
    " trigger read only the rows that belong to the changed row, with an index on their column."
    " Or do the trigger's work once for many rows. For a foreign key, create an index on the"
    " referring column (REFERENCES)."
)

BY_FOREIGN_KEY = (
    "Create an index on the column of {tables} that refers to the written table (REFERENCES): the"
    " foreign key searches it for each changed row. If a trigger reads the rows, create an index on"
    " the column that it compares."
)


def scans_only_indirectly(group: StatementGroup) -> bool:
    """Return whether a write scans many rows although its plan has no scan, and builds no index
    from a scan. EXPLAIN QUERY PLAN shows neither what triggers do nor the checks of foreign keys.
    """
    steps = [step.lstrip() for plan in group.plans for step in plan]
    has_scan = any(step.startswith("SCAN") or "AUTOMATIC" in step for step in steps)
    scanned = group.totals.full_scan_steps or 0.0
    changed = max(group.rows / max(1, group.totals.executions), 1.0)
    is_indirect = group.writes and bool(steps) and not has_scan
    return is_indirect and scanned >= SCANNED_ROWS * changed


def scans_other_tables(group: StatementGroup, is_schema_known: bool) -> bool:
    """Return whether a write that scans rows scans none by its own plan, or tables that the
    statement does not name. With a schema, the planner finds out more about such tables.
    """
    signs = [plan_signs(plan) for plan in group.plans]
    if group.writes and not any(one.scans or one.index_scans for one in signs):
        return True
    return not is_schema_known and bool(_other_scanned_tables(group))


def _other_scanned_tables(group: StatementGroup) -> tuple[str, ...]:
    if group.verb not in CHANGES:
        return ()  # an INSERT may read a view, whose tables it does not name
    named = {token.named for token in tokens_of(group.statement)}
    scanned = (table for plan in group.plans for table in plan_signs(plan).scans)
    return tuple(dict.fromkeys(table for table in scanned if table.lower() not in named))


def indirect_scan_finding(program: Program, group: StatementGroup) -> Finding | None:
    """Return the finding about a scan that a write causes indirectly."""
    tables = _other_scanned_tables(group)
    totals, named = group.totals, " and ".join(tables)
    scanned = scanned_rows_in_words(totals.full_scan_steps or 0)
    why = (
        f": the plan scans {named}, which the statement does not name"
        if tables
        else ", although the statement's own plan has no scan"
    )
    return program.make_finding(
        "full_scan",
        group,
        group.steady_ns * (1 - 1 / max(totals.full_scan_steps or 0.0, 1)),
        (
            f"{each_of_in_words(totals.executions, 'execution')} scanned {scanned}{why}",
            *fired_triggers_in_words(program, group),
        ),
        BY_FOREIGN_KEY.format(tables=named) if tables else BY_TRIGGER,
        program.innermost_loop(group),
    )
