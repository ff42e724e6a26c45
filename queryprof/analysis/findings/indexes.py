"""Findings about existing indexes that do not help. They need the database's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from queryprof.analysis.findings import shares
from queryprof.analysis.findings.finding import Finding, Severity
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.planning import NO_INDEX, Served
from queryprof.analysis.findings.program import Program
from queryprof.analysis.findings.scan_words import compare_plainly
from queryprof.analysis.findings.selectivity import rows_left, wins_of
from queryprof.analysis.marks import ROW_STEPS
from queryprof.analysis.plans import signs_of
from queryprof.analysis.totals import Totals
from queryprof.analysis.units import average, counted, rows_of_scan
from queryprof.analysis.units import rows as rows_of
from queryprof.model import Index, Schema
from queryprof.sql.clauses import (
    Comparison,
    aliases_of,
    column_of,
    comparisons_of,
    has_query,
    keywords_of,
    names_in,
    text_of,
)
from queryprof.sql.tokens import Token, tokens_of

STEPS_PER_ROW = 2 * ROW_STEPS
LEAST_STEPS = 1000
SEARCHING = frozenset({"=", "==", "<", ">", "<=", ">=", "IN", "BETWEEN"})
"""Comparisons for which SQLite can use an index."""

DEFEATING = frozenset(
    {
        "LOWER",
        "UPPER",
        "DATE",
        "DATETIME",
        "STRFTIME",
        "SUBSTR",
        "TRIM",
        "CAST",
        "ABS",
        "ROUND",
        "IFNULL",
        "COALESCE",
    }
)
"""Functions whose result is compared where the column itself could be."""

SCAN_STEPS = 10
"""VM steps per scanned row. More steps than this do not come from the scan."""


def works_hard(vm_steps: float | None, rows: float) -> bool:
    """Return whether an execution takes many more VM steps than its rows need."""
    return (vm_steps or 0.0) >= max(LEAST_STEPS, STEPS_PER_ROW * (rows + 1))


def index_defeated(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        scanned = {
            name
            for plan in group.plans
            for name in (*signs_of(plan).scans, *signs_of(plan).index_scans)
        }
        totals = group.totals
        read = totals.full_scan_steps or 0.0
        if not scanned or read < 100 or read < 4 * (totals.rows_each or 0):
            continue
        served = program.served(group)
        if served and (served.is_other or (served.by_prefix and group.share_of_open == 1.0)):
            continue  # see full_scan
        if program.stale_statistics(group.statement):
            continue  # SQLite may skip an index because the table was small
        reason = _planned(served) if served else _read(program, group, scanned, guesses=True)
        if reason is None and served and (served.by_prefix or not served.code):
            reason = _read(program, group, scanned, guesses=False)
        if reason is None:
            continue
        left = rows_left(group, served)
        wins = wins_of(served, left, read)
        is_prefix = bool(served and served.by_prefix and group.share_of_open != 0.0)
        is_unknown = bool(served and served.by_prefix and wins[1] < wins[0] / 2)
        yield program.finding(
            "index_defeated",
            group,
            group.steady_ns * (1 - (totals.rows_each or 0) / max(read, 1)),
            (
                (
                    f"{counted(totals.executions, 'execution')} read {rows_of_scan(read)} each to"
                    f" return {average(totals.rows_each)}"
                ),
                reason.evidence,
            ),
            reason.fix,
            program.loop_of(group),
            code=served.code if served and not (is_unknown or served.partial) else "",
            doubt=reason.doubt or PREFIX * is_prefix,
            most=Severity.MEDIUM if is_prefix or reason.doubt == OF_PATTERNS else Severity.HIGH,
        )


PREFIX = (
    "It helps patterns that begin with a letter and match few rows. Patterns that begin with %"
    " or * search all rows."
)


OF_PATTERNS = "The gain depends on the patterns."


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why SQLite does not use an index on a column."""

    evidence: str
    fix: str
    doubt: str = ""


def _planned(served: Served) -> _Reason | None:
    """Return the reason according to SQLite's planner."""
    terms = ", ".join(served.terms)
    if served.partial and (served.partial[2] or not served.code):
        name, condition, _ = served.partial
        return _Reason(
            f"the index {name} has only the rows WHERE {condition}, and the statement does not"
            " contain the same condition",
            f"Write the condition as in the index, with its value in the text: {condition}.",
            "It is unknown whether it needs only these rows.",
        )
    if served.code and served.searches and not (served.is_plain or served.by_prefix):
        return _Reason(
            f"it compares {terms}; an index on the column alone does not help that",
            "Compare the stored column itself, or create the index on the compared expression.",
        )
    if served.recollated and not served.code:
        columns = " and ".join(served.recollated)
        return _Reason(
            f"it compares {columns} with a different collation than the column's own, so SQLite"
            " cannot use an index on the column",
            f"Use the collation of {columns}: put it on the left of the comparison, or write its"
            " COLLATE. Or create an index with the comparison's collation.",
        )
    if served.differing and not served.code:
        columns = " and ".join(served.differing)
        return _Reason(
            f"it compares {columns} with another type, so SQLite cannot use an index on it",
            "Declare both columns with the same type. Or CAST the other side to the type of"
            f" {columns}, and create an index on the column.",
        )
    return None


def _read(program: Program, group: Group, scanned: set[str], guesses: bool) -> _Reason | None:
    """Return the reason according to the statement's text. `guesses` also allows reasons that the
    planner would have confirmed.
    """
    comparisons = comparisons_of(group.statement)
    for index in _indexes(program, scanned, group):
        for comparison in comparisons:
            found = _unused(group.statement, index.columns[0], comparison, guesses)
            if found:
                listed = ", ".join(index.columns)
                has = f"{index.table} has the index {index.name} ({listed}); {found.evidence}"
                return replace(found, evidence=has)
    # without an index there is nothing to defeat
    for comparison in () if program.schemas else comparisons:
        found = _guessed(group.statement, comparison)
        if found:
            return found
    return None


def _indexes(program: Program, scanned: set[str], group: Group) -> list[Index]:
    aliases = aliases_of(group.statement)
    tables = {aliases.get(name.lower(), name.lower()) for name in scanned}
    tables |= {name.lower() for name in scanned}
    return [
        index
        for schema in program.schemas.values()
        for index in schema.indexes
        if index.table.lower() in tables and not index.is_partial
    ]


def _unused(statement: str, column: str, comparison: Comparison, guesses: bool) -> _Reason | None:
    """Return why a comparison cannot use an index on a column, and what to do."""
    for operand, other in (
        (comparison.left, comparison.right),
        (comparison.right, comparison.left),
    ):
        if column.lower() not in names_in(operand) or has_query(operand):
            continue
        if "COLLATE" in keywords_of((*operand, *other)):
            return _Reason(
                f"the comparison of {column} uses a different collation than the index",
                f"Create the index with the collation of the comparison: ({column} COLLATE ...).",
            )
        if column_of(operand) != column.lower() and comparison.operator in ("LIKE", "GLOB"):
            return _computed_pattern(statement, operand, column)
        if column_of(operand) != column.lower():
            is_call = len(operand) > 1 and operand[1].text == "(" and operand[-1].text == ")"
            arithmetic = "Move the arithmetic to the other side, so that the column is alone."
            return _Reason(
                f"it compares {text_of(statement, operand)}, not {column}",
                compare_plainly(operand) if is_call else arithmetic,
            )
        if comparison.operator in ("LIKE", "GLOB"):
            return _Reason(
                f"{column} LIKE needs an index that ignores case, and a pattern that does not begin"
                " with %",
                f"Create an index on ({column} COLLATE NOCASE) for patterns that begin with"
                " letters. To find words inside texts, use FTS5.",
            )
        if guesses and comparison.operator in SEARCHING:
            return _Reason(
                f"{column} and the other operand differ in type or collation, or OR joins the"
                " column with one that has no index",
                "Give both columns the same type (and collation), or CAST the other side.",
            )
    return None


def _computed_pattern(statement: str, operand: Sequence[Token], column: str) -> _Reason:
    """Return the reason for a computed pattern. LIKE uses only an index on the column itself
    (https://www.sqlite.org/optoverview.html#the_like_optimization).
    """
    return _Reason(
        f"it compares {text_of(statement, operand)} with a pattern: no index helps, not even one"
        " on the expression",
        f"Compare {column} itself: LIKE ignores the case of ASCII letters. An index on ({column}"
        " COLLATE NOCASE) then helps with patterns that begin with a letter. To find words"
        " inside texts, use FTS5.",
        OF_PATTERNS,
    )


def _guessed(statement: str, comparison: Comparison) -> _Reason | None:
    """Return the reason without a schema, from the text alone."""
    operand, names = comparison.left, names_in(comparison.left)
    if len(names) != 1 or operand[0].keyword not in DEFEATING or comparison.operator == "IS":
        return None
    if comparison.operator in ("LIKE", "GLOB"):
        return _computed_pattern(statement, operand, names[0])
    return _Reason(
        f"it compares {text_of(statement, operand)}, so SQLite cannot use an index on {names[0]}",
        f"Compare {names[0]} itself, or create an index on the expression.",
        "It is unknown whether there is an index on the column: use --db.",
    )


def bad_index_choice(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if totals.full_scan_steps or steps < LEAST_STEPS or steps < STEPS_PER_ROW * (rows + 1):
            continue
        used = {
            found[1]
            for plan in group.plans
            for step in plan
            if (found := re.search(r"USING (?:COVERING )?INDEX (\S+)", step))
        }
        for schema in program.schemas.values():
            other = _better(group.statement, used, schema)
            if other and not schema.has_statistics:
                is_ordered = "INDEXED" in keywords_of(tokens_of(group.statement))
                served = program.served(group)
                code = served.code if served and served.searches and not is_ordered else ""
                tables = max(sum("SCAN" in s or "SEARCH" in s for s in p) for p in group.plans)
                yield program.finding(
                    "bad_index_choice",
                    group,
                    group.steady_ns * (1 - shares.needed(totals)),
                    (
                        (
                            f"{counted(totals.executions, 'execution')} take {average(steps)} VM"
                            f" steps to return {rows_of(rows)} by {', '.join(sorted(used))};"
                            f" {other.name} ({', '.join(other.columns)}) also fits, but SQLite"
                            " has no statistics to choose it"
                        ),
                    ),
                    (
                        "Remove INDEXED BY from the statement, and run ANALYZE. INDEXED BY"
                        " forces SQLite to use the named index."
                        if is_ordered
                        else (
                            "Create an index on all compared columns. Or run ANALYZE (or PRAGMA"
                            " optimize) once the tables are filled, which may be enough."
                            if code
                            else "Run ANALYZE (or PRAGMA optimize) once the tables are filled."
                        )
                    ),
                    program.loop_of(group),
                    code=code or "ANALYZE;" * (not is_ordered),
                    doubt="" if code else "The result of ANALYZE is unknown: --prove measures it.",
                    most=Severity.HIGH if code or tables > 1 else Severity.MEDIUM,
                )
                break


def _better(statement: str, used: set[str], schema: Schema) -> Index | None:
    taken = [index for index in schema.indexes if index.name in used]
    tables = {index.table for index in taken}
    compared = {
        column_of(operand)
        for comparison in comparisons_of(statement)
        for operand in (comparison.left, comparison.right)
        if comparison.operator in SEARCHING
    }
    for index in schema.indexes:
        is_other = index.name not in used and not any(map(index.begins, taken))
        if index.is_partial:
            # only the planner can tell whether the index holds all of the statement's rows
            continue
        if index.table in tables and is_other and index.columns[0].lower() in compared:
            return index
    return None


def _work(totals: Totals) -> str:
    rows = totals.rows_each or 0.0
    return (
        f"{counted(totals.executions, 'execution')} took {average(totals.vm_steps)} VM steps each"
        f" to return {rows_of(rows)}"
    )


def stale_statistics(program: Program) -> Iterator[Finding | None]:
    """Find statements whose plan is based on row counts of ANALYZE, although the tables have grown
    since.
    """
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if not works_hard(steps, rows):
            continue
        grown = program.stale_statistics(group.statement)
        if not grown or not program.planner.is_misled(group.statement, group.plans):
            continue
        yield program.finding(
            "stale_statistics",
            group,
            group.steady_ns * (1 - shares.needed(totals)),
            (
                _work(totals),
                *grown,
            ),
            "Run ANALYZE now, and PRAGMA optimize when you close connections: SQLite chooses"
            " plans by the statistics of ANALYZE.",
            program.loop_of(group),
            code="ANALYZE;",
            doubt=(
                "Without these statistics SQLite chooses another plan; --prove measures what it"
                " saves."
            ),
        )


def narrow_index(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if (totals.full_scan_steps or 0) * SCAN_STEPS > steps:
            continue  # the scan needs these steps
        if not works_hard(steps, rows):
            continue
        served = program.served(group)
        throws_all_away = rows < 1 and group.reads  # an aggregate always returns a row
        code = served.code if served and not totals.full_scan_steps else ""
        if not served or served.is_other or not (code or throws_all_away):
            continue
        searches = [step.strip() for plan in group.plans for step in plan if "SEARCH" in step]
        yield program.finding(
            "narrow_index",
            group,
            group.steady_ns * (1 - shares.needed(totals)),
            (
                _work(totals),
                *searches[:1],
            ),
            (
                f"Create an index on all compared{' and sorted' * served.sorts_less} columns:"
                f" {', '.join(served.terms)}."
                if code
                else NO_INDEX
            ),
            program.loop_of(group),
            code=code,
        )
