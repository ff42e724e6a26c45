"""Find comparisons that keep SQLite from using an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import average, counted, each_if_several, scanned_rows_in_words
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.indexes import SEARCHING
from queryprof.findings.program import Program
from queryprof.findings.scan_words import function_call_advice, plain_column_advice
from queryprof.findings.selectivity import index_saving_shares, rows_left_by_index
from queryprof.model import Index
from queryprof.planner.facts import IndexHelp
from queryprof.sql.clauses import ComparedOperands, comparisons_of, tables_by_alias
from queryprof.sql.operands import (
    contains_query,
    keywords_of,
    names_in,
    operand_column,
    operand_text,
    table_of_column,
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


def find_defeated_indexes(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        signs = [plan_signs(plan) for plan in group.plans]
        scanned = {name for sign in signs for name in (*sign.scans, *sign.index_scans)}
        totals = group.totals
        read = totals.full_scan_steps or 0.0
        if not scanned or read < 100 or read < 4 * (totals.rows_each or 0):
            continue
        index_help = program.index_help(group)
        if index_help and (
            index_help.is_other or (index_help.by_prefix and group.wildcard_share == 1.0)
        ):
            continue  # find_full_scans reports it
        if program.stale_statistics(group.statement):
            continue  # SQLite may skip an index because the table was small
        reason = (
            _reason_from_planner(index_help)
            if index_help
            else _reason_from_text(program, group, scanned, guesses=True)
        )
        is_found = bool(index_help and index_help.code and index_help.searches)
        left = rows_left_by_index(group, index_help)
        wins = index_saving_shares(index_help, left, read)
        # the planner's index is on another column, and may leave many rows to read
        may_save_little = is_found and bool(program.schemas) and wins[1] < wins[0] / 2
        is_instead = False  # True if the reason replaces the index that the planner found
        if (
            reason is None
            and index_help
            and (index_help.by_prefix or not is_found or may_save_little)
        ):
            reason = _reason_from_text(program, group, scanned, guesses=False)
            is_instead, is_found = is_found, False
        if reason is None:
            continue
        is_prefix = bool(index_help and index_help.by_prefix and group.wildcard_share != 0.0)
        is_unknown = bool(index_help and index_help.by_prefix and wins[1] < wins[0] / 2)
        doubts = reason.doubt or PREFIX * is_prefix or UNKNOWN_MATCHES * is_instead
        yield program.make_finding(
            "index_defeated",
            group,
            group.steady_ns * (1 - (totals.rows_each or 0) / max(read, 1)),
            (
                (
                    f"{counted(totals.executions, 'execution')} read"
                    f" {scanned_rows_in_words(read)}{each_if_several(totals.executions)} to"
                    f" return {average(totals.rows_each)}"
                ),
                reason.evidence,
            ),
            reason.fix,
            program.innermost_loop(group),
            code=_helpful_code(index_help) if index_help and is_found and not is_unknown else "",
            doubt=doubts,
            most=(
                Severity.MEDIUM
                if is_prefix or is_instead or reason.doubt == OF_PATTERNS
                else Severity.HIGH
            ),
        )


def _helpful_code(index_help: IndexHelp) -> str:
    """Return the SQL that creates the indexes, or "" if the statement has to change to use them."""
    return "" if index_help.partial or index_help.differing else index_help.code


PREFIX = (
    "The index helps patterns that begin without a wildcard and match few rows. Patterns that begin"
    " with % or * search all rows."
)


UNKNOWN_MATCHES = "It is unknown how many rows the comparison finds."

OF_PATTERNS = "The gain depends on the patterns."


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why SQLite does not use an index on a column."""

    evidence: str
    fix: str
    doubt: str = ""


def _reason_from_planner(index_help: IndexHelp) -> _Reason | None:
    """Return the reason according to SQLite's planner."""
    terms = ", ".join(index_help.terms)
    if index_help.partial and (index_help.partial[2] or not index_help.code):
        name, condition, _ = index_help.partial
        return _Reason(
            f"the index {name} has only the rows WHERE {condition}, and the statement does not"
            " contain the same condition",
            f"Copy the index's condition into WHERE, with a literal value: {condition}.",
            "It is unknown whether the program needs only these rows.",
        )
    if (
        index_help.code
        and index_help.searches
        and not (index_help.is_plain or index_help.by_prefix)
    ):
        if any("COLLATE" in term for term in index_help.terms):
            return _Reason(
                f"the query compares {terms}; an index on the column has another collation, so"
                " SQLite cannot use that index",
                "Give the index and the comparison the same collation.",
            )
        return _Reason(
            f"the query compares {terms}; an index on the column alone does not help",
            "Compare the stored column itself, or create the index on the compared expression.",
        )
    if index_help.recollated and not index_help.code:
        columns = " and ".join(index_help.recollated)
        return _Reason(
            f"the statement compares {columns} with a different collation than the column's own, so"
            " SQLite cannot use an index on the column",
            f"Compare with the collation of {columns}: put the column on the left of the"
            " comparison, or add `COLLATE` with its collation. Or create an index with the"
            " comparison's collation.",
        )
    if index_help.differing:
        columns = " and ".join(index_help.differing)
        return _Reason(
            f"the statement compares {columns} with another type, so SQLite cannot use an index"
            " on the column",
            "Declare both columns with the same type. Or CAST the other side to the type of"
            f" {columns}. Create an index on {columns} if there is none.",
        )
    return None


def _reason_from_text(
    program: Program, group: StatementGroup, scanned: set[str], guesses: bool
) -> _Reason | None:
    """Return the reason according to the statement's text. With `guesses`, also return reasons that
    only the planner could confirm.
    """
    comparisons = comparisons_of(group.statement)
    index_help = program.index_help(group)
    functions = index_help.functions if index_help else ()
    aliases = tables_by_alias(group.statement)
    names = {name.lower() for name in scanned}
    tables = names | {aliases.get(name, name) for name in names}
    indexes = (one for schema in program.schemas.values() for one in schema.indexes)
    for index in indexes:
        for comparison in comparisons:
            if index.is_partial or not _may_compare(comparison, index, aliases, tables):
                continue
            found = _reason_index_unused(
                group.statement, index.columns[0], comparison, guesses, functions
            )
            if found:
                listed = ", ".join(index.columns)
                has = f"{index.table} has the index {index.name} ({listed}), but {found.evidence}"
                return replace(found, evidence=has)
    # with a known schema, the loop above has checked the tables' indexes
    for comparison in () if program.schemas else comparisons:
        found = _reason_without_schema(group.statement, comparison)
        if found:
            return found
    return None


def _may_compare(
    comparison: ComparedOperands, index: Index, aliases: Mapping[str, str], scanned: set[str]
) -> bool:
    """Return whether a comparison may be about an index's table. A column that is written without
    its table may belong to any scanned table.
    """
    column, table = index.columns[0].lower(), index.table.lower()
    sides = (comparison.left, comparison.right)
    named = {table_of_column(side, column) for side in sides} - {""}
    return table in ({aliases.get(one, one) for one in named} or scanned)


def _reason_index_unused(
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
        if column.lower() not in names_in(operand) or contains_query(operand):
            continue
        if "COLLATE" in keywords_of((*operand, *other)):
            return _Reason(
                f"the comparison of {column} uses a different collation than the index",
                f"Create the index with the collation of the comparison: ({column} COLLATE ...).",
            )
        if operand_column(operand) != column.lower() and comparison.operator in ("LIKE", "GLOB"):
            return _reason_computed_pattern(statement, operand, column)
        if operand_column(operand) != column.lower():
            is_call = len(operand) > 1 and operand[1].text == "(" and operand[-1].text == ")"
            arithmetic = "Move the arithmetic to the other side, so that the column is alone."
            return _Reason(
                f"the statement compares {operand_text(statement, operand)}, not {column}",
                function_call_advice(operand, functions)
                or (plain_column_advice(operand) if is_call else arithmetic),
            )
        if comparison.operator in ("LIKE", "GLOB"):
            return _reason_pattern(statement, other, column, comparison.operator)
        if guesses and comparison.operator in SEARCHING:
            return _Reason(
                f"{column} and the other operand differ in type or collation, or an OR also tests"
                " a column without an index",
                "Give both columns the same type (and collation), or CAST the other side.",
            )
    return None


def _reason_pattern(
    statement: str, pattern: Sequence[Token], column: str, operator: str
) -> _Reason:
    """Return the reason why a pattern cannot use the index on a column. SQLite uses an index only
    for a pattern that is one literal or parameter
    (https://www.sqlite.org/optoverview.html#the_like_optimization).
    """
    if len([token for token in pattern if token.text not in ("(", ")")]) > 1:
        index = f", and create an index on ({column} COLLATE NOCASE)" * (operator == "LIKE")
        return _Reason(
            "SQLite uses no index for a pattern that the statement builds:"
            f" {column} {operator} {operand_text(statement, pattern)}",
            "Pass the pattern as one value, such as 'abc%' (SQLAlchemy: `.like(text + \"%\")` in"
            f" place of `.startswith(text)`){index}. This helps if patterns do not"
            " begin with a wildcard.",
        )
    return _Reason(
        f"{column} LIKE needs an index that ignores case, and a pattern that does not begin with %",
        f"Create an index on ({column} COLLATE NOCASE). It helps with patterns that do not begin"
        " with a wildcard. To find words inside texts, use FTS5.",
    )


def _reason_computed_pattern(statement: str, operand: Sequence[Token], column: str) -> _Reason:
    """Return the reason for a computed pattern. For LIKE, SQLite can use only an index on the
    column itself (https://www.sqlite.org/optoverview.html#the_like_optimization).
    """
    return _Reason(
        f"the statement compares {operand_text(statement, operand)} with a pattern: no index helps,"
        " not even an index on the expression",
        f"Compare {column} itself: LIKE ignores the case of ASCII letters. An index on ({column}"
        " COLLATE NOCASE) then helps with patterns that do not begin with a wildcard. To find"
        " words inside texts, use FTS5.",
        OF_PATTERNS,
    )


def _reason_without_schema(statement: str, comparison: ComparedOperands) -> _Reason | None:
    """Return the reason from the statement's text if the schema is unknown."""
    operand, names = comparison.left, names_in(comparison.left)
    if len(names) != 1 or operand[0].keyword not in DEFEATING or comparison.operator == "IS":
        return None
    if comparison.operator in ("LIKE", "GLOB"):
        return _reason_computed_pattern(statement, operand, names[0])
    return _Reason(
        f"the statement compares {operand_text(statement, operand)}, so SQLite cannot use an index"
        f" on {names[0]}",
        f"Compare {names[0]} itself, or create an index on the expression.",
        "It is unknown whether there is an index on the column: use --db.",
    )
