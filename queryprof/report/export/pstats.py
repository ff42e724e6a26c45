"""Statistics in cProfile's format, for pstats, snakeviz and other viewers.

The format is the one that profile.Profile.dump_stats writes (CPython, Lib/profile.py). It is a
marshalled dict:

- key: (file, line, function)
- value: (primitive calls, calls, own time, cumulative time, callers), times in seconds
- callers: the same figures by calling function

Statements are leaves: only they have own time.
"""

from __future__ import annotations

import marshal
from itertools import pairwise

from queryprof.report.export.weights import ROOT, CallPathWeight, FunctionNode

MARK = b"\nqueryprof export\n"
"""The bytes after the marshalled dict. Readers ignore these bytes; queryprof recognizes its own
files by them.
"""

Figures = list[float]
"""[primitive calls, calls, own time, cumulative time]; times in ns."""


def pstats_file(weights: list[CallPathWeight]) -> bytes:
    """Return the statistics file. A recursive function's time counts once per path."""
    nodes: dict[FunctionNode, Figures] = {ROOT: [0, 0, 0, 0]}
    callers: dict[FunctionNode, dict[FunctionNode, Figures]] = {}

    def add(figures: Figures, weight: CallPathWeight, is_own: bool) -> None:
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
                *_figures_in_seconds(figures),
                {tuple(one): _figures_in_seconds(of) for one, of in callers.get(node, {}).items()},
            )
            for node, figures in nodes.items()
        }
    )
    return content + MARK


def _figures_in_seconds(figures: Figures) -> tuple[int, int, float, float]:
    primitive, calls, own_ns, all_ns = figures
    return int(primitive), int(calls), own_ns / 1e9, all_ns / 1e9
