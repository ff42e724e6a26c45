"""Find comparisons that keep SQLite from using an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import average, counted, rows_of_scan
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import Group
from queryprof.findings.indexes import SEARCHING
from queryprof.findings.program import Program
from queryprof.findings.scan_words import called_fix, compare_plainly
from queryprof.findings.selectivity import rows_left, wins_of
from queryprof.model import Index
from queryprof.planner.facts import Served
from queryprof.sql.clauses import (
    ComparedOperands,
    aliases_of,
    column_of,
    comparisons_of,
    has_query,
    keywords_of,
    names_in,
    text_of,
)
from queryprof.sql.tokens import Token

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
"""Functions that statements often apply to a column where they could compare the column itself."""


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
        if served and (served.is_other or (served.by_prefix and group.share_of_wildcards == 1.0)):
            continue  # see full_scan
        if program.stale_statistics(group.statement):
            continue  # SQLite may skip an index because the table was small
        reason = _planner_reason(served) if served else _read(program, group, scanned, guesses=True)
        if reason is None and served and (served.by_prefix or not served.code):
            reason = _read(program, group, scanned, guesses=False)
        if reason is None:
            continue
        left = rows_left(group, served)
        wins = wins_of(served, left, read)
        is_prefix = bool(served and served.by_prefix and group.share_of_wildcards != 0.0)
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


def _planner_reason(served: Served) -> _Reason | None:
    """Return the reason according to SQLite's planner."""
    terms = ", ".join(served.terms)
    if served.partial and (served.partial[2] or not served.code):
        name, condition, _ = served.partial
        return _Reason(
            f"the index {name} has only the rows WHERE {condition}, and the statement does not"
            " contain the same condition",
            f"Write the condition as in the index, with its value in the text: {condition}.",
            "It is unknown whether the program needs only these rows.",
        )
    if served.code and served.searches and not (served.is_plain or served.by_prefix):
        if any("COLLATE" in term for term in served.terms):
            return _Reason(
                f"the query compares {terms}; an index on the column has another collation, so"
                " SQLite cannot use that index",
                "Create the index with the comparison's collation, or compare with the index's.",
            )
        return _Reason(
            f"the query compares {terms}; an index on the column alone does not help",
            "Compare the stored column itself, or create the index on the compared expression.",
        )
    if served.recollated and not served.code:
        columns = " and ".join(served.recollated)
        return _Reason(
            f"it compares {columns} with a different collation than the column's own, so SQLite"
            " cannot use an index on the column",
            f"Compare with the collation of {columns}: put the column on the left of the"
            " comparison, or add `COLLATE` with its collation. Or create an index with the"
            " comparison's collation.",
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
    served = program.served(group)
    functions = served.functions if served else ()
    for index in _indexes_of_scanned(program, scanned, group):
        for comparison in comparisons:
            found = _unused_reason(
                group.statement, index.columns[0], comparison, guesses, functions
            )
            if found:
                listed = ", ".join(index.columns)
                has = f"{index.table} has the index {index.name} ({listed}); {found.evidence}"
                return replace(found, evidence=has)
    # a known schema has no index to defeat here
    for comparison in () if program.schemas else comparisons:
        found = _guessed_reason(group.statement, comparison)
        if found:
            return found
    return None


def _indexes_of_scanned(program: Program, scanned: set[str], group: Group) -> list[Index]:
    aliases = aliases_of(group.statement)
    tables = {aliases.get(name.lower(), name.lower()) for name in scanned}
    tables |= {name.lower() for name in scanned}
    return [
        index
        for schema in program.schemas.values()
        for index in schema.indexes
        if index.table.lower() in tables and not index.is_partial
    ]


def _unused_reason(
    statement: str,
    column: str,
    comparison: ComparedOperands,
    guesses: bool,
    functions: Sequence[str],
) -> _Reason | None:
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
                called_fix(operand, functions)
                or (compare_plainly(operand) if is_call else arithmetic),
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


def _guessed_reason(statement: str, comparison: ComparedOperands) -> _Reason | None:
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
