"""Find expressions in a statement's text that an index may contain. The planner decides whether an
index can contain them, and whether the index helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from queryprof.sql.clauses import comparisons_of, sort_terms
from queryprof.sql.operands import (
    contains_query,
    keywords_of,
    names_in,
    operand_column,
    operand_text,
)
from queryprof.sql.tokens import Token


def column_expressions(sql: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the compared and sorted expressions that use only `columns`, without table names."""
    names = {name.lower() for name in columns}
    found: dict[str, None] = {}
    for operand in _compared_and_sorted(sql):
        kinds = {token.kind for token in operand}
        is_expression = (
            operand and not operand_column(operand) and operand[0].text not in ("+", "-")
        )
        is_fixed = "parameter" not in kinds and "COLLATE" not in keywords_of(operand)
        words = set(names_in(operand))
        if is_expression and is_fixed and not contains_query(operand) and words and words <= names:
            found[operand_text(sql, operand)] = None
    return tuple(found)


def _compared_and_sorted(sql: str) -> Iterator[tuple[Token, ...]]:
    for comparison in comparisons_of(sql):
        yield comparison.left
        yield comparison.right
    yield from sort_terms(sql)
