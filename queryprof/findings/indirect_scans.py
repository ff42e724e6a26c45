"""Scans that a write causes indirectly: by a trigger, or by a foreign key to its table."""

from __future__ import annotations

from itertools import pairwise

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
    """Return whether a write scans many rows although its plan shows no scan and no automatic
    index. EXPLAIN QUERY PLAN shows neither what triggers do nor the checks of foreign keys.
    """
    steps = [step.lstrip() for plan in group.plans for step in plan]
    has_scan = any(step.startswith("SCAN") or "AUTOMATIC" in step for step in steps)
    scanned = group.totals.full_scan_steps or 0.0
    changed = max(group.rows / max(1, group.totals.executions), 1.0)
    is_indirect = group.writes and bool(steps) and not has_scan
    return is_indirect and scanned >= SCANNED_ROWS * changed


def scans_other_tables(group: StatementGroup, is_schema_known: bool) -> bool:
    """Return whether a write scans rows only indirectly: its plan shows no scan, or shows scans of
    tables that the statement does not name. If the schema is known, tables that an UPDATE or DELETE
    does not name are left to the planner.
    """
    signs = [plan_signs(plan) for plan in group.plans]
    if group.writes and not any(one.scans or one.index_scans for one in signs):
        return True
    is_unknown = not is_schema_known or group.verb not in CHANGES
    return is_unknown and bool(_other_scanned_tables(group))


def _other_scanned_tables(group: StatementGroup) -> tuple[str, ...]:
    """Return the tables that a statement about one table scans only for its foreign keys or
    triggers. The result is empty for other statements, which may read a view.
    """
    tokens = tokens_of(group.statement)
    target, named = group.clauses.changed, {token.named for token in tokens}
    if not target or not _is_about_one_table(group):
        return ()
    scanned = list(dict.fromkeys(one for plan in group.plans for one in plan_signs(plan).scans))
    if group.verb not in CHANGES:
        return tuple(scanned)  # the VALUES of a REPLACE read no table
    steps = [f" {step.lower().replace('.', ' ')} " for plan in group.plans for step in plan]
    own = [step.split()[0] for step in steps if f" {target} " in step]
    if {"search", "scan"} <= set(own):
        return (target,)  # its rows refer to other rows of the same table
    others = (one for one in scanned if one.lower().rpartition(".")[2] not in named)
    return tuple(others) if own else ()  # without `own`, the target is a view


def _scans_in_words(group: StatementGroup, tables: tuple[str, ...]) -> str:
    if tables == (group.clauses.changed,):
        return f"also scans {tables[0]} itself"
    return f"scans {' and '.join(tables)}, which the statement does not name"


def _is_about_one_table(group: StatementGroup) -> bool:
    """Return whether a statement changes one table, deletes rows of it or replaces them, and reads
    no other table or view.
    """
    tokens = tokens_of(group.statement)
    words = [token.keyword for token in tokens]
    if any(one.keyword == "IN" and after.text != "(" for one, after in pairwise(tokens)):
        return False  # a table after IN
    reads = {"SELECT", "WITH", "TABLE"} | ({"FROM"} if group.verb == "UPDATE" else set())
    is_change = group.verb in CHANGES or group.verb == "REPLACE" or words[1:3] == ["OR", "REPLACE"]
    return is_change and reads.isdisjoint(words)


def indirect_scan_finding(program: Program, group: StatementGroup) -> Finding | None:
    """Return the finding about a scan that a write causes indirectly."""
    tables = _other_scanned_tables(group)
    totals, named = group.totals, " and ".join(tables)
    scanned = scanned_rows_in_words(totals.full_scan_steps or 0)
    why = (
        f": the plan {_scans_in_words(group, tables)}"
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
