"""Weighted call paths: the common input of all export formats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from queryprof.analysis.totals import executions_of
from queryprof.model import CallPath, Frame, Profile
from queryprof.report.inert import escape_control_characters
from queryprof.report.places import Places

SQL_FILE = "sql"
"""The `file` of nodes that are statements."""

MAX_NAME_CHARACTERS = 300


class FunctionNode(NamedTuple):
    """A function with its first line, or a statement with a number in place of a line."""

    file: str
    line: int
    name: str


ROOT = FunctionNode("~", 0, "<database time>")
OTHER = FunctionNode("~", 0, "(other)")
"""Replaces the nodes that are dropped to limit their number."""


@dataclass(frozen=True, slots=True)
class CallPathWeight:
    """A statement's executions from one call path.

    `nodes` starts with the outermost function and ends with the statement.
    """

    nodes: tuple[FunctionNode, ...]
    executions: int
    ns: int


def call_path_weights(profile: Profile) -> list[CallPathWeight]:
    """Return the call paths of a profile. Their times add up to the database time."""
    paths: dict[tuple[str, CallPath], tuple[int, int]] = {}
    for one in profile.aggregates:
        if one.count:
            before = paths.get((one.statement, one.path), (0, 0))
            paths[one.statement, one.path] = (
                before[0] + executions_of([one]),
                before[1] + one.self_ns,
            )
    nodes = _NodeMaker(profile, (path for _, path in paths))
    return [
        CallPathWeight((*nodes.nodes_of(path), nodes.statement(statement)), executions, ns)
        for (statement, path), (executions, ns) in paths.items()
    ]


class _NodeMaker:
    def __init__(self, profile: Profile, paths: Iterable[CallPath]) -> None:
        self._places = Places(profile)
        self._first: dict[tuple[str, str], int] = {}
        self._statements: dict[str, FunctionNode] = {}
        for path in paths:
            for frame in path:
                key = (frame.file, frame.function)
                self._first[key] = min(frame.line, self._first.get(key, frame.line))

    def _first_line(self, frame: Frame) -> int:
        """Return the first line of the frame's function or, if unknown, the smallest recorded line
        of the function.
        """
        return frame.first_line or self._first[frame.file, frame.function]

    def nodes_of(self, path: CallPath) -> list[FunctionNode]:
        return [
            FunctionNode(
                escape_control_characters(self._places.file(frame.file)),
                self._first_line(frame),
                escape_control_characters(frame.function),
            )
            for frame in reversed(path)
        ]

    def statement(self, statement: str) -> FunctionNode:
        known = self._statements.get(statement)
        if known is None:
            name = escape_control_characters(statement[:MAX_NAME_CHARACTERS])
            known = self._statements[statement] = FunctionNode(
                SQL_FILE, len(self._statements) + 1, name
            )
        return known


def limit_nodes(weights: list[CallPathWeight], top: int | None) -> list[CallPathWeight]:
    """Keep the `top` most expensive nodes and replace all others by OTHER.

    The total time stays the same. Consecutive OTHER nodes become one.
    """
    if top is None:
        return weights
    spent: dict[FunctionNode, int] = {}
    for weight in weights:
        for node in set(weight.nodes):
            spent[node] = spent.get(node, 0) + weight.ns
    kept = frozenset(sorted(spent, key=lambda node: (-spent[node], node))[:top])
    found: dict[tuple[FunctionNode, ...], tuple[int, int]] = {}
    for weight in weights:
        nodes: list[FunctionNode] = []
        for node in weight.nodes:
            shown = node if node in kept else OTHER
            if not (nodes and nodes[-1] == OTHER == shown):
                nodes.append(shown)
        before = found.get(tuple(nodes), (0, 0))
        found[tuple(nodes)] = (before[0] + weight.executions, before[1] + weight.ns)
    return [CallPathWeight(nodes, *sums) for nodes, sums in found.items()]


def node_label(node: FunctionNode) -> str:
    """Describe a node in one line."""
    if node.file in (SQL_FILE, "~"):
        return node.name
    return f"{node.name} ({node.file}:{node.line})"
