"""What DuckDB's profiler says of an execution: its operators, as JSON.

Versions 1.5 and 2.0 of duckdb have other names for the same. Conditions, projections and file names
of an operator are not kept: there are values in them.
"""

from __future__ import annotations

import json
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Operator: TypeAlias = tuple[str, str, int, int, int]
    """Place in the tree, name, rows that it returned, rows that it read, and ns."""

OFF = "disabled"
"""The result in place of a profile where the profiler is off."""

COPY = {"RESULT_COLLECTOR", "COLUMN_DATA_SCAN"}
"""The operators with which DuckDB hands over rows as data frames, which are not the statement's."""

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
        plan: a number that executions with the same operators have, in all processes.
    """

    def __init__(self, sql: str, operators: list[Operator]) -> None:
        self.sql, self.operators = sql, operators
        tree = "\n".join([f"{place} {name}" for place, name, *_ in operators])
        self.plan = crc32(tree.encode("utf-8", "backslashreplace"))


def is_off(text: str) -> bool:
    """Whether the profiler is off, by what it says."""
    return OFF in text and not profile_of(text)


def profile_of(text: str) -> OperatorProfile | None:
    """Reads a profile; None: there is none of an execution in it."""
    try:
        content = json.loads(text)
        query = content.get("query") or {}
        sql = query.get("sql") or content.get("query_name") or ""
        roots = content.get("operator") or content.get("children") or []
        operators = list(_walk(roots, ""))[:MOST_OPERATORS]
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        return None
    is_copy = not sql and {name for _, name, *_ in operators} <= COPY
    is_one = bool(operators) and isinstance(sql, str) and not is_copy
    return OperatorProfile(sql, operators) if is_one else None


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
    """Its type, with the table or the kind of join."""
    facts = node.get("extra_info") or {}
    parts = [
        str(node.get("type") or node.get("operator_type") or "?"),
        _table(facts.get("Table")),
        str(facts.get("Join Type") or ""),
        "(index)" if facts.get("Type") == "Index Scan" else "",
    ]
    return " ".join(filter(None, parts))[:LONGEST_NAME]


def _table(name: object) -> str:
    """A table's schema and name. The catalog before them is the database file's name, which no
    statement has to have.
    """
    text = "\n".join(map(str, name)) if isinstance(name, list) else str(name or "")
    dots, is_quoted = [-1], False
    for place, character in enumerate(text):
        is_quoted ^= character == '"'
        if character == "." and not is_quoted:
            dots.append(place)
    return text[dots[max(0, len(dots) - 2)] + 1 :]


def _figure(unit: float, node: dict[str, Any], *names: str) -> int:
    """The figure that has one of these names, as a whole number; 0: there is none. Raises
    ValueError: it is none that can be added up.
    """
    figure = round(next((node[name] for name in names if name in node), 0) * unit)
    if not 0 <= figure <= LARGEST:
        raise ValueError(figure)
    return figure
