"""The call tree: callers above the statements that they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from queryprof.model import Aggregate, Frame


@dataclass(slots=True)
class Node:
    """A function or, as a leaf, a statement, with the database time below it.

    Attributes:
        frame: None for a statement and at the root.
        total_ns: the database time of this node and its descendants. calls: their driver calls.
    """

    name: str
    frame: Frame | None
    total_ns: int = 0
    calls: int = 0
    children: dict[tuple[str, str], Node] = field(default_factory=dict)

    def child_named(self, name: str, frame: Frame | None) -> Node:
        key = (name, frame.file if frame else "")
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = Node(name, frame)
        return found

    @property
    def children_by_time(self) -> list[Node]:
        """Return the children, most time first."""
        return sorted(self.children.values(), key=lambda node: (-node.total_ns, node.name))


def call_tree(aggregates: Iterable[Aggregate]) -> Node:
    """Return the tree of all call paths, outermost functions first. A path has only its recorded
    frames (six by default), so the tree begins at the outermost recorded frames.
    """
    root = Node("", None)
    for aggregate in aggregates:
        if not aggregate.count:
            continue
        nodes = [root]
        for frame in reversed(aggregate.path):
            nodes.append(nodes[-1].child_named(frame.function, frame))
        nodes.append(nodes[-1].child_named(aggregate.statement, None))
        for node in nodes:
            node.total_ns += aggregate.self_ns
            node.calls += aggregate.count
    return root
