"""Read PostgreSQL's plans from EXPLAIN's JSON output.

(https://www.postgresql.org/docs/current/sql-explain.html)
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from queryprof.model.postgresql import ServerPlan, ServerTable, TableScan

SEQ_SCAN = "Seq Scan"
ALONG_INDEX = ("Index Scan", "Index Only Scan")
READS_ALL = ("Sort", "Hash", "Materialize", "Aggregate", "WindowAgg", "Unique", "SetOp")
"""Nodes that read all rows of their children, even if a LIMIT reads only part of their output."""

CONDITIONS = ("Index Cond", "Hash Cond", "Merge Cond", "Join Filter", "Filter", "Sort Key")
EXPRESSION = re.compile(r"[a-z_]\w*\((?:[\w\"(), ]|::text)*\)")
"""A function call whose arguments are columns, as printed by the server."""

CAST = re.compile(r"\((\"(?:[^\"]|\"\")+\"|\w+)\)::text")
"""A column cast to text. The cast is immutable (and can be indexed) only for text columns."""

FUNCTION = re.compile(r"\b([a-z_]\w*)\(")

MAX_NODES = 500
LEADER_SHARE = 0.3
"""Each worker reduces the leader's own contribution to a parallel scan by this share
(get_parallel_divisor in src/backend/optimizer/path/costsize.c).
"""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node of a plan.

    Attributes:
        depth: distance from the top.
        loops: expected number of runs.
        times: number of processes that share the node's rows.
        is_limited: whether the node may stop early because of a LIMIT above it.
    """

    fields: Mapping[str, Any]
    depth: int
    loops: float
    times: float
    is_limited: bool

    @property
    def kind(self) -> str:
        return str(self.fields.get("Node Type") or "?")

    @property
    def table(self) -> str:
        """The table with its schema; "" without one."""
        name = self.fields.get("Relation Name")
        return f"{self.fields.get('Schema', '')}.{name}" if name else ""

    @property
    def rows(self) -> float:
        """Expected number of rows, over all processes."""
        return self.numeric_property("Plan Rows") * self.times

    @property
    def reads_whole_table(self) -> bool:
        """Whether the node reads a whole table, directly or by an index without a condition."""
        is_along = self.kind in ALONG_INDEX and not self.fields.get("Index Cond")
        return bool(self.table) and (self.kind == SEQ_SCAN or is_along) and not self.is_limited

    def numeric_property(self, name: str) -> float:
        value = self.fields.get(name)
        return float(value) if isinstance(value, (int, float)) else 0.0


def plan_nodes(top: Mapping[str, Any]) -> tuple[PlanNode, ...]:
    """Return the nodes of a plan, parents first, up to MAX_NODES."""
    found = []
    for node in _walk(PlanNode(top, 0, 1.0, 1.0, is_limited=False), 1.0):
        found.append(node)
        if len(found) == MAX_NODES:
            break
    return tuple(found)


def _walk(node: PlanNode, once: float) -> Iterator[PlanNode]:
    """Yield a node and its descendants.

    Args:
        once: expected number of runs of the node if its rows are kept between runs (Materialize).
    """
    yield node
    is_limited = node.kind == "Limit" or (node.is_limited and node.kind not in READS_ALL)
    workers = node.numeric_property("Workers Planned")
    times = workers + max(0.0, 1 - LEADER_SHARE * workers) if workers else node.times
    loops = once if node.kind == "Materialize" else node.loops
    outer_rows = 1.0
    for fields in node.fields.get("Plans") or ():
        relation = fields.get("Parent Relationship")
        repeats = 1.0
        if relation == "Inner" and node.kind == "Nested Loop":
            repeats = outer_rows
        elif relation == "SubPlan":
            repeats = max(1.0, node.rows)
        below = PlanNode(fields, node.depth + 1, loops * repeats, times, is_limited)
        yield from _walk(below, loops)
        if relation == "Outer":
            outer_rows = max(1.0, below.numeric_property("Plan Rows"))


def parse_plan(
    document: Mapping[str, Any],
    tables: Mapping[str, ServerTable],
    parameters: int,
    immutable: Container[str] = (),
) -> ServerPlan:
    """Return the plan in the output of EXPLAIN (VERBOSE, FORMAT JSON).

    Args:
        tables: those tables of the plan that the catalogue has, by name with schema.
        parameters: number of the statement's parameters.
        immutable: functions that can be used in an index expression.
    """
    nodes = plan_nodes(document["Plan"])
    query_id = document.get("Query Identifier")
    cost = nodes[0].numeric_property("Total Cost")
    names = dict.fromkeys(node.table for node in nodes if node.table)
    return ServerPlan(
        tuple((node.depth, _step_text(node)) for node in nodes),
        nodes[0].rows,
        parameters,
        tuple(
            _table_scan(node, tables.get(node.table), cost, immutable)
            for node in nodes
            if node.reads_whole_table
        ),
        tuple(tables[name] for name in names if name in tables),
        query_id if isinstance(query_id, int) else None,
    )


def split_conjuncts(condition: str) -> tuple[str, ...]:
    """Split a condition at its top-level ANDs. The condition has all parentheses, as printed by the
    server.
    """
    depth, quote, start = 0, "", 1
    parts: list[str] = []
    for place, sign in enumerate(condition):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in ("'", '"'):
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        elif depth == 1 and condition.startswith(" AND ", place):
            parts.append(condition[start:place])
            start = place + len(" AND ")
    if not parts:
        return (condition,)
    return (*parts, condition[start:-1])


def equality_columns(
    node: PlanNode, table: ServerTable | None, immutable: Container[str] = ()
) -> tuple[str, ...]:
    """Return the columns and expressions, as SQL, that a node's filter compares with values.

    Only comparisons for equality count, and only if they are combined with AND.
    """
    alias = str(node.fields.get("Alias") or "")
    quoted = alias.replace('"', '""')
    aliases = (f"{alias}.", f'"{quoted}".')
    found: dict[str, None] = {}
    for part in split_conjuncts(str(node.fields.get("Filter") or "")):
        left, _, right = part[1:-1].partition(" = ")
        sides = ((left, right), (right, left)) if table and right else ()
        for term in filter(None, (_compared_column(*both, table, aliases) for both in sides)):
            called = FUNCTION.findall(term)
            if all(name in immutable for name in called):
                found.setdefault(term)
    return tuple(found)


def _compared_column(
    side: str, other: str, table: ServerTable | None, aliases: tuple[str, ...]
) -> str:
    """Return the column or expression of a table on one side of a comparison with a value.

    Returns "" if the side is neither a column nor an expression, or if the other side is not a
    value.
    """
    is_value = "$" in other and not any(alias in other for alias in aliases)
    is_value = is_value and not other.startswith("ALL (")
    if not is_value or "$" in side or not any(alias in side for alias in aliases):
        return ""
    for alias in aliases:
        side = side.replace(alias, "")
    texts = {column for _, column, is_text in table.columns if is_text} if table else set()
    for _, column, _ in table.columns if table else ():
        if side == column or (column in texts and side == f"({column})::text"):
            return column
    is_fixed = side.count("::text") == len(CAST.findall(side)) and texts.issuperset(
        CAST.findall(side)
    )
    return f"({side})" if is_fixed and EXPRESSION.fullmatch(side) else ""


def _table_scan(
    node: PlanNode, table: ServerTable | None, cost: float, immutable: Container[str]
) -> TableScan:
    share = min(1.0, node.numeric_property("Total Cost") * node.loops / cost) if cost > 0 else 1.0
    return TableScan(
        node.table,
        str(node.fields.get("Index Name") or ""),
        str(node.fields.get("Filter") or ""),
        equality_columns(node, table, immutable),
        node.rows,
        table.rows if table else None,
        node.loops,
        share,
    )


def _step_text(node: PlanNode) -> str:
    strategy = node.fields.get("Strategy")
    words = [f"{strategy} {node.kind}" if strategy in ("Hashed", "Sorted") else node.kind]
    if node.fields.get("Parallel Aware"):
        words.insert(0, "Parallel")
    if node.fields.get("Index Name"):
        words.append(f"using {node.fields['Index Name']}")
    if node.table:
        words.append(f"on {node.table}")
    for name in CONDITIONS:
        value = node.fields.get(name)
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"[{name}: {text}]")
    rows = f"{node.rows:,.0f}"
    step = f"{' '.join(words)}, {rows} {'row' if rows == '1' else 'rows'}"
    subplan = node.fields.get("Subplan Name")
    return f"{subplan}: {step}" if subplan else step
