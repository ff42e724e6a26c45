"""The call tree, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Group, RenderableType

from queryprof.analysis.report import Report
from queryprof.analysis.tree import Node, call_tree
from queryprof.analysis.units import counted, duration, percent
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, print_parts

MIN_SHARE = 0.01
"""A node is shown if it takes at least this share of the database time."""


def print_tree(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the callers above the statements that they run, each with its share and time."""
    console = console_for(file, width)
    places = Places(report.profile)
    root = call_tree(report.profile.aggregates)
    total = root.total_ns or 1
    print_parts(console, [Group(*_tree_lines(root, total, places, 0))])


def _tree_lines(node: Node, total: int, places: Places, depth: int) -> Iterator[RenderableType]:
    shown = [child for child in node.children_by_time if child.total_ns >= MIN_SHARE * total]
    for child in shown:
        name = (places.frame_text(child.frame), "cyan") if child.frame else (child.name, "")
        yield Text.assemble(
            (f"{percent(child.total_ns / total):>6}", "bold"),
            f"  {duration(child.total_ns):>8}  ",
            "  " * depth,
            name,
            (f"  {counted(child.calls, 'call')}", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )
        yield from _tree_lines(child, total, places, depth + 1)
    left = len(node.children) - len(shown)
    if left and depth == 0:
        yield Text(f"{'':18}{counted(left, 'smaller one')}", "dim")
