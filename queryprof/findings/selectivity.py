"""Estimate how many of a scan's rows an index would leave to read."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.findings import shares
from queryprof.findings.groups import StatementGroup
from queryprof.planner.facts import IndexHelp
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import tokens_of

MANY_RETURNED = 2
"""If a query returns fewer rows than this, count() or sum() may have read any number of rows."""
ADDED_UP = (
    "It is unknown how many rows count() or sum() reads. With more than a tenth of the"
    " table, an index saves little. --prove measures the saving."
)
OTHERS = (
    "Other conditions also skip rows, so it is unknown how many this index leaves. With more"
    " than a tenth of the table, the index saves little. --prove measures the saving."
)


JOINING = frozenset({"GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT"})
"""Functions whose result depends on the order of the rows."""


def row_order_warning(group: StatementGroup) -> str:
    """Return a warning if a result depends on the order of the rows, which an index may change."""
    called = JOINING.intersection(map(str.upper, functions_in(tokens_of(group.statement))))
    return "".join(
        f" {one.lower()}() joins values in row order, which an index changes."
        for one in sorted(called)
    )


NEARLY_ALL = 0.8
READS_MOST_ROWS = (
    "The query reads most rows. An index helps only if the rows are much wider than the columns"
    " that it reads (for 70% of 60,000 rows, an index saved 22 to 83% of the time as rows grew by"
    " 500 bytes): --prove measures the saving."
)


@dataclass(frozen=True, slots=True)
class RemainingRows:
    """The rows that an index leaves to read: at least `least`, at most `most`.

    Attributes:
        relative_extra_steps: the extra time of a row that is left, in units of the time of a
            skipped row.
        doubt: why the number of rows is unknown; "" if it is known.
    """

    least: float
    most: float
    relative_extra_steps: float
    doubt: str


def is_aggregate(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether a statement combines several rows into one, according to its SQLite bytecode,
    or to its text if the bytecode is unknown.
    """
    if index_help is None or index_help.is_other:
        return group.clauses.adds_up or group.clauses.groups
    return index_help.is_aggregate


def rows_left_by_index(group: StatementGroup, index_help: IndexHelp | None) -> RemainingRows:
    """Return how many of the read rows the helpful index leaves."""
    totals, clauses = group.totals, group.clauses
    read, returned = totals.full_scan_steps or 0.0, totals.rows_each or 0.0
    adds_up = is_aggregate(group, index_help)
    # the foreign key's search finds only the referring rows, which are few
    if index_help and index_help.by_reference:
        return RemainingRows(returned, returned, shares.FETCHED_ROWS, "")
    if index_help is None or not index_help.terms:
        return RemainingRows(
            returned,
            read if adds_up and returned < MANY_RETURNED else returned,
            shares.FETCHED_ROWS,
            ADDED_UP,
        )
    terms = {term.lower() for term in index_help.terms}
    if index_help.is_plain and not adds_up and _returns_any_match(group):
        return RemainingRows(returned, returned, shares.FETCHED_ROWS, "")
    if index_help.row_steps and index_help.is_plain:
        makes_fewer = adds_up or (clauses.orders and clauses.limits) or group.is_distinct
        least, most = index_help.row_steps.estimate_remaining_rows(
            terms, totals.vm_steps or 0.0, read, None if makes_fewer else returned
        )
        more = index_help.row_steps.relative_extra_steps if adds_up else shares.FETCHED_ROWS
        return RemainingRows(
            max(least, returned), max(most, returned), more, ADDED_UP if adds_up else OTHERS
        )
    is_known = not (adds_up and returned < MANY_RETURNED) and not group.compares_other_columns(
        terms
    )
    return RemainingRows(
        returned,
        returned if is_known else read,
        shares.FETCHED_ROWS,
        ADDED_UP if adds_up else OTHERS,
    )


def _returns_any_match(group: StatementGroup) -> bool:
    """Return whether the query returns each row that matches any one of its comparisons (OR without
    AND or NOT). An index then finds no more rows than the query returns.
    """
    words = {token.keyword for token in tokens_of(group.statement)}
    loops = [sum(map(_is_loop_step, plan)) for plan in group.plans]
    is_only = "OR" in words and words.isdisjoint({"AND", "NOT", "LIMIT", "DISTINCT"})
    return is_only and loops == [1] * len(loops)


def _is_loop_step(step: str) -> bool:
    return step.lstrip().startswith(("SCAN ", "SEARCH "))


def can_stop_early(group: StatementGroup, index_help: IndexHelp | None) -> bool | None:
    """Return whether a query with ORDER BY and LIMIT stops early in an index of that order.

    Until LIMIT is reached, such a query looks up every row of the index in the table. So it reads
    more than a scan if only a few rows match its WHERE. Returns None if the number of matching rows
    is unknown.
    """
    if index_help is None or index_help.searches or not group.clauses.chooses:
        return True
    if index_help.row_steps is None:
        return None
    compared = frozenset().union(*(one.columns for one in index_help.row_steps.left_out))
    read, returned = group.totals.full_scan_steps or 0.0, group.totals.rows_each or 0.0
    least, most = index_help.row_steps.estimate_remaining_rows(
        compared, group.totals.vm_steps or 0.0, read, None
    )
    needed = shares.LOOKUP_ROWS * max(1.0, returned)
    if most <= needed:
        return False
    return True if least > needed else None


def index_saving_shares(
    index_help: IndexHelp | None, left: RemainingRows, read: float
) -> tuple[float, float]:
    """Return the shares of a scanning statement's time that the index saves: one for the fewest
    rows that the index may leave, and one for the most.
    """
    lookup = shares.COVERED_ROWS if index_help and index_help.covers else shares.LOOKUP_ROWS
    least, most = (
        shares.scan_saving_share(read, rows, left.relative_extra_steps, lookup)
        for rows in (left.least, left.most)
    )
    return least, most
