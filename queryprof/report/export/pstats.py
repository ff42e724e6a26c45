"""Statistics as cProfile writes them, for pstats, snakeviz and other viewers of them.

The format is that of profile.Profile.dump_stats (CPython, Lib/profile.py): a marshalled dict from
(file, line, function) to (primitive calls, calls, own time, time with what it called, callers), in
seconds; callers are the same by function. Statements are its leaves: they have the time of their
own.
"""

from __future__ import annotations

import marshal
from itertools import pairwise

from queryprof.report.export.weights import ROOT, Node, Weight

MARK = b"\nqueryprof export\n"
"""After the marshalled dict, where readers do not look: distinguishes a file of ours."""

Figures = list[float]
"""Primitive calls, calls, own time and time with what was called, in ns."""


def pstats_file(weights: list[Weight]) -> bytes:
    """The statistics. A function's time is counted once for each path, however often it is
    in it.
    """
    nodes: dict[Node, Figures] = {ROOT: [0, 0, 0, 0]}
    callers: dict[Node, dict[Node, Figures]] = {}

    def add(figures: Figures, weight: Weight, is_own: bool) -> None:
        for at, value in enumerate(
            (weight.executions, weight.executions, weight.ns if is_own else 0, weight.ns)
        ):
            figures[at] += value

    for weight in weights:
        path = (ROOT, *weight.nodes)
        for node in set(path):
            add(nodes.setdefault(node, [0, 0, 0, 0]), weight, node == path[-1])
        for caller, node in set(pairwise(path)):
            of_node = callers.setdefault(node, {})
            add(of_node.setdefault(caller, [0, 0, 0, 0]), weight, node == path[-1])
    content = marshal.dumps(
        {
            tuple(node): (
                *_seconds(figures),
                {tuple(one): _seconds(of) for one, of in callers.get(node, {}).items()},
            )
            for node, figures in nodes.items()
        }
    )
    return content + MARK


def _seconds(figures: Figures) -> tuple[int, int, float, float]:
    primitive, calls, own_ns, all_ns = figures
    return int(primitive), int(calls), own_ns / 1e9, all_ns / 1e9
