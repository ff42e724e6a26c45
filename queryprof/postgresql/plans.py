"""The plans of PostgreSQL, read from what EXPLAIN writes as JSON
(https://www.postgresql.org/docs/current/sql-explain.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from queryprof.model.postgresql import ServerPlan, ServerTable, TableScan

SEQ_SCAN = "Seq Scan"
CONDITIONS = ("Index Cond", "Hash Cond", "Merge Cond", "Join Filter", "Filter", "Sort Key")
MOST_NODES = 500


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a plan.

    Attributes:
        depth: below the top. loops: how often it runs, as the planner expects.
    """

    fields: Mapping[str, Any]
    depth: int
    loops: float

    @property
    def table(self) -> str:
        """With its schema; "": it reads none."""
        name = self.fields.get("Relation Name")
        return f"{self.fields.get('Schema', '')}.{name}" if name else ""

    def number(self, name: str) -> float:
        value = self.fields.get(name)
        return float(value) if isinstance(value, (int, float)) else 0.0


def nodes_of(top: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes of a plan, each before those below it; the first of very many."""
    found = []
    for node in _walk(top, 0, 1.0):
        found.append(node)
        if len(found) == MOST_NODES:
            break
    return tuple(found)


def _walk(fields: Mapping[str, Any], depth: int, loops: float) -> Iterator[Node]:
    yield Node(fields, depth, loops)
    outer_rows = 1.0
    for child in fields.get("Plans") or ():
        is_inner = child.get("Parent Relationship") == "Inner"
        is_repeated = is_inner and fields.get("Node Type") == "Nested Loop"
        is_kept = child.get("Node Type") in ("Materialize", "Memoize")
        yield from _walk(child, depth + 1, loops * (outer_rows if is_repeated else 1.0))
        if not is_kept and child.get("Parent Relationship") == "Outer":
            outer_rows = max(1.0, float(child.get("Plan Rows") or 1))


def plan_of(document: Mapping[str, Any], tables: Mapping[str, ServerTable]) -> ServerPlan:
    """The plan that EXPLAIN (VERBOSE, FORMAT JSON) has written.

    Args:
        tables: by name with schema, those that the plan reads, as far as the catalogue has them.
    """
    nodes = nodes_of(document["Plan"])
    query_id = document.get("Query Identifier")
    cost = nodes[0].number("Total Cost")
    names = dict.fromkeys(node.table for node in nodes if node.table)
    return ServerPlan(
        tuple((node.depth, _step(node)) for node in nodes),
        nodes[0].number("Plan Rows"),
        tuple(
            _scan(node, tables.get(node.table), cost)
            for node in nodes
            if node.fields.get("Node Type") == SEQ_SCAN and node.table
        ),
        tuple(tables[name] for name in names if name in tables),
        query_id if isinstance(query_id, int) else None,
    )


def _scan(node: Node, table: ServerTable | None, cost: float) -> TableScan:
    share = min(1.0, node.number("Total Cost") * node.loops / cost) if cost > 0 else 1.0
    return TableScan(
        node.table,
        str(node.fields.get("Filter") or ""),
        node.number("Plan Rows"),
        table.rows if table else None,
        share,
    )


def _step(node: Node) -> str:
    words = [str(node.fields.get("Node Type") or "?")]
    if node.fields.get("Index Name"):
        words.append(f"using {node.fields['Index Name']}")
    if node.table:
        words.append(f"on {node.table}")
    for name in CONDITIONS:
        value = node.fields.get(name)
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"[{name}: {text}]")
    return f"{' '.join(words)}, {node.number('Plan Rows'):,.0f} rows"
