"""The call tree of a page as columns. Nodes too small to see are merged."""

from __future__ import annotations

from typing import Any

from queryprof.analysis.tree import Node
from queryprof.report.html.numbers import NONE, TextNumbers
from queryprof.report.html.page_places import PagePlaces

SMALLEST_SHARE = 1 / 2000
"""Share of the database time below which nodes are merged into SMALLER."""

SMALLER = "(smaller)"
MAX_NAME_CHARACTERS = 200


def tree_columns(
    root: Node, before: Node | None, numbers: TextNumbers, places: PagePlaces
) -> dict[str, Any]:
    """Return the nodes as columns; each node comes after its parent.

    Args:
        before: root of another recording's tree; nodes with the same names are compared.
    """
    columns: dict[str, list[Any]] = {
        "name": [],
        "parent": [],
        "self_ns": [],
        "statement": [],
        "before_ns": [],
    }
    smaller = numbers.text_number(SMALLER)

    def add(*values: int | None) -> int:
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        return len(columns["name"]) - 1

    def before_ns(node: Node | None) -> int | None:
        return node.total_ns if node else None

    first = add(numbers.text_number(""), NONE, root.total_ns, NONE, before_ns(before))
    waiting = [(root, before, first)]
    while waiting:
        node, was, number = waiting.pop()
        left_ns = 0
        for child in node.children_by_time:
            if child.total_ns < max(1, root.total_ns * SMALLEST_SHARE):
                left_ns += child.total_ns
                continue
            key = (child.name, child.frame.file if child.frame else "")
            child_was = was.children.get(key) if was else None
            shortened = child.name[:MAX_NAME_CHARACTERS]
            name = places.frame_text(child.frame) if child.frame else shortened
            statement = NONE if child.frame else numbers.statement_number(child.name)
            place = add(
                numbers.text_number(name), number, child.total_ns, statement, before_ns(child_was)
            )
            waiting.append((child, child_was, place))
        if left_ns > 0:
            add(smaller, number, left_ns, NONE, None)
    if before is None:
        del columns["before_ns"]
    return {**columns, "smaller": smaller}
