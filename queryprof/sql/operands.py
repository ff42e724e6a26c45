"""The operands of comparisons: columns, names and functions in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from queryprof.sql.tokens import Token

NO_FUNCTIONS = frozenset({"CAST", "IN", "AND", "OR", "NOT", "EXISTS", "VALUES"})
NO_COLUMNS = frozenset(
    {
        "AS",
        "COLLATE",
        "NULL",
        "TRUE",
        "FALSE",
        "AND",
        "OR",
        "NOT",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
    }
)


def contains_query(operand: Sequence[Token]) -> bool:
    """Return whether an operand contains a subquery, whose names may belong to other tables."""
    return "SELECT" in keywords_of(operand)


def keywords_of(operand: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.keyword for token in operand)


def operand_column(operand: Sequence[Token]) -> str:
    """Return the operand's column in lower case; "" if the operand is not just a column."""
    operand = without_parentheses(operand)
    names = operand[::2]
    is_plain = len(operand) % 2 == 1 and all(token.text == "." for token in operand[1::2])
    return names[-1].named if is_plain and all(token.named for token in names) else ""


def without_parentheses(operand: Sequence[Token]) -> Sequence[Token]:
    """Return an operand without parentheses around a column. Django writes `a = ("t"."b")`."""
    is_inside = len(operand) > 2 and (operand[0].text, operand[-1].text) == ("(", ")")
    return operand[1:-1] if is_inside and len(operand) in (3, 5) else operand


def names_in(operand: Sequence[Token]) -> tuple[str, ...]:
    """Return the names in an operand that may be columns.

    Excludes names of tables, functions, types and collations.
    """
    found: list[str] = []
    in_type = False
    for place, token in enumerate(operand):
        in_type = (in_type or token.keyword == "AS") and token.text != ")"
        is_other = in_type or token.keyword in NO_COLUMNS or is_at(operand, place - 1, "COLLATE")
        if token.named and not is_other and not is_any_of(operand, place + 1, ".("):
            found.append(token.named)
    return tuple(found)


def functions_in(operand: Sequence[Token]) -> tuple[str, ...]:
    """Return the functions that an operand calls, in lower case."""
    return tuple(
        token.named
        for token, after in pairwise(operand)
        if token.kind == "word" and token.keyword not in NO_FUNCTIONS and after.text == "("
    )


def operand_text(statement: str, operand: Sequence[Token]) -> str:
    """Return an operand's text without the table names that qualify columns."""
    parts: list[str] = []
    end = operand[0].start if operand else 0
    place = 0
    while place < len(operand):
        token = operand[place]
        parts.append(statement[end : token.start])
        if token.named and is_at(operand, place + 1, "."):
            place += 2
            end = operand[place].start if place < len(operand) else 0
            continue
        parts.append(token.text)
        end = token.start + len(token.text)
        place += 1
    return "".join(parts)


def is_any_of(tokens: Sequence[Token], place: int, signs: str) -> bool:
    return 0 <= place < len(tokens) and tokens[place].text in tuple(signs)


def is_at(tokens: Sequence[Token], place: int, mark: str) -> bool:
    return 0 <= place < len(tokens) and (tokens[place].keyword or tokens[place].text) == mark


def table_of_column(operand: Sequence[Token], column: str) -> str:
    """Return the table or alias that an operand writes before a column, in lower case; "" if the
    operand lacks the column, or writes it without a table.
    """
    for table, dot, name in zip(operand, operand[1:], operand[2:], strict=False):
        if dot.text == "." and name.named == column:
            return table.named
    return ""
