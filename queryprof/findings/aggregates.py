"""Advice to compute the aggregates for all items of a loop with one query."""

from __future__ import annotations

from queryprof.findings.library_calls import grouped_aggregate_advice
from queryprof.sql.clauses import comparisons_of
from queryprof.sql.tokens import tokens_of

AGGREGATE_NAMES = frozenset({"avg", "count", "max", "min", "sum"})

LITERALS = ("parameter", "number")
"""Kinds of tokens that are assumed never to be NULL as the argument of count()."""

EQUAL, BELOW, ABOVE = {"=", "==", "IN", "IS"}, {"<", "<="}, {">", ">="}

GROUP_BY = (
    "Compute it for all items with one query (GROUP BY the compared columns), and look up the"
    " values in a dict."
)
RUNNING = (
    "Each execution adds up the rows of all earlier executions again. Compute the running values"
    " with one query: GROUP BY the compared column, and a window function over the groups, such as"
    " sum(sum(amount)) OVER (ORDER BY day). Then look up the values in a dict."
)
RANGES = (
    "Compute it for all ranges with one query: GROUP BY an expression that numbers the ranges"
    " (time / 3600 for hours, CASE for others), and look up the values in a dict."
)


def aggregates_at_once(statement: str, library: str) -> str:
    """Return how to compute a statement's aggregates for all items of a loop with one query.

    Args:
        library: the object mapper that made the statement, or "".
    """
    operators = _operators_of_parameters(statement)
    if operators & EQUAL or not operators & (BELOW | ABOVE | {"BETWEEN"}):
        return grouped_aggregate_advice(library, _first_aggregate(statement)) or GROUP_BY
    is_closed = "BETWEEN" in operators or (operators & BELOW and operators & ABOVE)
    return RANGES if is_closed else RUNNING


def _operators_of_parameters(statement: str) -> frozenset[str]:
    """Return the operators that compare a column with a parameter."""
    return frozenset(
        one.operator
        for one in comparisons_of(statement)
        if any(token.kind == "parameter" for token in (*one.left, *one.right))
    )


def _first_aggregate(statement: str) -> str:
    """Return the first aggregate function of a statement, in lower case."""
    named = (token.named for token in tokens_of(statement))
    return next((one for one in named if one in AGGREGATE_NAMES), "count")


def returns_only_a_count(statement: str) -> bool:
    """Return whether a SELECT returns nothing but a row count."""
    tokens = tokens_of(statement)
    outer = [one for one in tokens if one.depth == 0]
    words = [one.keyword for one in outer]
    selected = outer[: words.index("FROM")] if "FROM" in words else outer
    kinds = [one.kind if one.kind in LITERALS else one.text.upper() for one in tokens[:5]]
    counts_rows = kinds[:3] == ["SELECT", "COUNT", "("] and kinds[4:] == [")"]
    is_only = all(one.named or one.text in "()" for one in selected)  # an alias is allowed
    return counts_rows and kinds[3] in (*LITERALS, "*") and "GROUP" not in words and is_only
