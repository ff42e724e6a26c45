"""Expressions in a statement's text that an index may contain. The planner decides whether an index
can contain them, and whether the index helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from queryprof.sql.clauses import (
    column_of,
    comparisons_of,
    has_query,
    keywords_of,
    names_in,
    sorted_by,
    text_of,
)
from queryprof.sql.tokens import Token


def expressions_of(sql: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the compared and sorted expressions over columns of one table, as an index
    needs them.
    """
    names = {name.lower() for name in columns}
    found: dict[str, None] = {}
    for operand in _operands(sql):
        kinds = {token.kind for token in operand}
        is_expression = operand and not column_of(operand) and operand[0].text not in ("+", "-")
        is_fixed = "parameter" not in kinds and "COLLATE" not in keywords_of(operand)
        words = set(names_in(operand))
        if is_expression and is_fixed and not has_query(operand) and words and words <= names:
            found[text_of(sql, operand)] = None
    return tuple(found)


def _operands(sql: str) -> Iterator[tuple[Token, ...]]:
    for comparison in comparisons_of(sql):
        yield comparison.left
        yield comparison.right
    yield from sorted_by(sql)
