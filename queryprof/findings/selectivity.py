"""Estimate how many of a scan's rows an index would leave to read."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.findings import shares
from queryprof.findings.groups import Group
from queryprof.planner.facts import Served
from queryprof.sql.clauses import functions_in
from queryprof.sql.tokens import tokens_of

MANY_RETURNED = 2
"""If a query returns fewer rows, count() or sum() may have made the rows from any number of read
rows.
"""
ADDED_UP = (
    "It is unknown how many rows count() or sum() reads. With more than a tenth of the"
    " table, an index saves little: --prove measures."
)
OTHERS = (
    "Other conditions also skip rows, so it is unknown how many this index leaves. With more"
    " than a tenth of the table, it saves little: --prove measures."
)


JOINING = frozenset({"GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT"})
"""Functions whose result depends on the order of the rows."""


def order_note(group: Group) -> str:
    """Return a warning if a result depends on the order of the rows, which an index may change."""
    called = JOINING.intersection(map(str.upper, functions_in(tokens_of(group.statement))))
    return "".join(
        f" {one.lower()}() joins values in row order, which an index changes."
        for one in sorted(called)
    )


NEARLY_ALL = 0.8
READS_MOST_ROWS = (
    "It reads most rows. An index helps only if the rows are much wider than the columns that it"
    " reads (for 70% of 60,000 rows, an index saved 22 to 83% of the time as rows grew by 500"
    " bytes): --prove measures."
)


@dataclass(frozen=True, slots=True)
class Left:
    """The rows that an index leaves to read: at least `least`, at most `most`.

    Attributes:
        more: the extra time of a row that is left, in units of the time of a skipped row.
        doubt: why the number of rows is unknown; "" if it is known.
    """

    least: float
    most: float
    more: float
    doubt: str


def is_aggregate(group: Group, served: Served | None) -> bool:
    """Return whether a statement combines several rows into one, according to its SQLite program or
    else to its text.
    """
    if served is None or served.is_other:
        return group.clauses.adds_up or group.clauses.groups
    return served.is_aggregate


def rows_left(group: Group, served: Served | None) -> Left:
    """Return how many of the read rows the helpful index leaves."""
    totals, clauses = group.totals, group.clauses
    read, returned = totals.full_scan_steps or 0.0, totals.rows_each or 0.0
    adds_up = is_aggregate(group, served)
    # the foreign key's search finds only the referring rows, which are few
    if served and served.by_reference:
        return Left(returned, returned, shares.FETCHED_ROWS, "")
    if served is None or not served.terms:
        return Left(
            returned,
            read if adds_up and returned < MANY_RETURNED else returned,
            shares.FETCHED_ROWS,
            ADDED_UP,
        )
    terms = {term.lower() for term in served.terms}
    if served.is_plain and not adds_up and _returns_any_match(group):
        return Left(returned, returned, shares.FETCHED_ROWS, "")
    if served.row_steps and served.is_plain:
        makes_fewer = adds_up or (clauses.orders and clauses.limits) or group.is_distinct
        least, most = served.row_steps.rows_left(
            terms, totals.vm_steps or 0.0, read, None if makes_fewer else returned
        )
        more = served.row_steps.more if adds_up else shares.FETCHED_ROWS
        return Left(
            max(least, returned), max(most, returned), more, ADDED_UP if adds_up else OTHERS
        )
    is_known = not (adds_up and returned < MANY_RETURNED) and not group.compares_more(terms)
    return Left(
        returned,
        returned if is_known else read,
        shares.FETCHED_ROWS,
        ADDED_UP if adds_up else OTHERS,
    )


def _returns_any_match(group: Group) -> bool:
    """Return whether the query returns each row that matches any one of its comparisons (OR without
    AND or NOT). An index then finds no more rows than the query returns.
    """
    words = {token.keyword for token in tokens_of(group.statement)}
    loops = [sum(map(_is_loop, plan)) for plan in group.plans]
    is_only = "OR" in words and words.isdisjoint({"AND", "NOT", "LIMIT", "DISTINCT"})
    return is_only and loops == [1] * len(loops)


def _is_loop(step: str) -> bool:
    return step.lstrip().startswith(("SCAN ", "SEARCH "))


def has_enough_rows(group: Group, served: Served | None) -> bool | None:
    """Return whether a query with ORDER BY and LIMIT stops early in an index of that order.

    Until LIMIT is reached, such a query looks up every row of the index in the table. So it reads
    more than a scan if only a few rows match its WHERE. Returns None if the number of matching rows
    is unknown.
    """
    if served is None or served.searches or not group.clauses.chooses:
        return True
    if served.row_steps is None:
        return None
    compared = frozenset().union(*(one.columns for one in served.row_steps.left_out))
    read, returned = group.totals.full_scan_steps or 0.0, group.totals.rows_each or 0.0
    least, most = served.row_steps.rows_left(compared, group.totals.vm_steps or 0.0, read, None)
    needed = shares.LOOKUP_ROWS * max(1.0, returned)
    if most <= needed:
        return False
    return True if least > needed else None


def wins_of(served: Served | None, left: Left, read: float) -> tuple[float, float]:
    """Return the shares of a scanning statement's time that the index saves: one for the fewest
    rows that the index may leave, and one for the most.
    """
    lookup = shares.COVERED_ROWS if served and served.covers else shares.LOOKUP_ROWS
    least, most = (
        shares.saved_of_scan(read, rows, left.more, lookup) for rows in (left.least, left.most)
    )
    return least, most
