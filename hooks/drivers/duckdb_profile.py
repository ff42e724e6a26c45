"""What DuckDB's profiler says of an execution: its operators, as JSON.

Versions 1.5 and 2.0 of duckdb have other names for the same. Conditions, projections and file names
of an operator are not kept: there are values in them.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Operator: TypeAlias = tuple[str, str, int, int, int]
    """Place in the tree, name, rows that it returned, rows that it read, and ns."""

NAMED = ("Table", "Join Type")
"""What an operator's name has behind its type, where it is known."""

LONGEST_NAME = 200
LARGEST = 1 << 53
"""Of figures: more than 100 days in nanoseconds."""

MOST_OPERATORS = 500
"""Of an execution; the rest of a larger plan is not kept."""


class OperatorProfile:
    """The profile of an execution.

    Attributes:
        sql: the statement; "": it has not ended yet.
        operators: each comes before those that it reads from.
    """

    def __init__(self, sql: str, operators: list[Operator]) -> None:
        self.sql, self.operators = sql, operators


def profile_of(text: str) -> OperatorProfile | None:
    """Reads a profile; None: there is none of an execution in it."""
    try:
        content = json.loads(text)
        query = content.get("query") or {}
        sql = query.get("sql") or content.get("query_name") or ""
        roots = content.get("operator") or content.get("children") or []
        operators = list(_walk(roots, ""))[:MOST_OPERATORS]
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return OperatorProfile(sql, operators) if operators and isinstance(sql, str) else None


def _walk(nodes: list[dict[str, Any]], place: str) -> Iterator[Operator]:
    for number, node in enumerate(nodes):
        here = f"{place}{number}"
        yield (
            here,
            _name(node),
            _figure(1, node, "intermediate_rows", "operator_cardinality"),
            _figure(1, node, "rows_scanned", "operator_rows_scanned"),
            _figure(1e9, node, "timing", "operator_timing"),
        )
        yield from _walk(node.get("children") or [], f"{here}.")


def _name(node: dict[str, Any]) -> str:
    facts = node.get("extra_info") or {}
    kind = node.get("type") or node.get("operator_type") or "?"
    parts = [str(kind), *(str(facts[name]) for name in NAMED if facts.get(name))]
    return " ".join(parts)[:LONGEST_NAME]


def _figure(unit: float, node: dict[str, Any], *names: str) -> int:
    """The figure that has one of these names, as a whole number; 0: there is none. Raises
    ValueError: it is none that can be added up.
    """
    figure = round(next((node[name] for name in names if name in node), 0) * unit)
    if not 0 <= figure <= LARGEST:
        raise ValueError(figure)
    return figure
