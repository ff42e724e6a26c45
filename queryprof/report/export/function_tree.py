"""cProfile's statistics as a tree of functions: each caller above the functions it calls.

cProfile keeps callers, not whole stacks. Below a function with several callers, the times are
estimates: they are split in proportion to the callers' times, as other viewers do.
"""

from __future__ import annotations

import marshal
from collections import defaultdict

from queryprof.analysis.tree import Node
from queryprof.model import Frame
from queryprof.report.export.functions import Function, Statistics
from queryprof.report.export.weights import SQL_FILE

SMALLEST_SHARE = 1 / 2000
"""Share of the total time below which a function's callees are not followed."""

MAX_DEPTH = 200
MAX_NODES = 50_000

Called = dict[Function, list[tuple[Function, float]]]
"""For each caller, the functions it called, each with its cumulative time in seconds."""


def build_function_tree(content: bytes) -> Node:
    """Build the tree from a file that cProfile or `queryprof run --cprofile` wrote.

    Raises:
        ValueError: the file has another format.
    """
    statistics = _load_cprofile_statistics(content)
    called: Called = defaultdict(list)
    for function, figures in statistics.items():
        for caller, of_caller in figures[-1].items():
            if caller != function:
                called[caller].append((function, of_caller[-1]))
    root = Node("", None)
    root.total_ns = round(sum(own_s for _, _, own_s, *_ in statistics.values()) * 1e9)
    waiting: list[tuple[Node, Function, float, tuple[Function, ...]]] = [
        (root, function, all_s, ())
        for function, (_, _, _, all_s, callers) in statistics.items()
        if not callers.keys() - {function}
    ]
    nodes = 0
    while waiting and nodes < MAX_NODES:
        above, function, spent_s, path = waiting.pop()
        node = _add_call(above, function, spent_s)
        nodes += 1
        all_s = statistics[function][3]
        is_followed = node.total_ns >= root.total_ns * SMALLEST_SHARE and len(path) < MAX_DEPTH
        if is_followed and all_s > 0:
            inside = (*path, function)
            part = min(spent_s / all_s, 1.0)
            waiting += [
                (node, callee, called_s * part, inside)
                for callee, called_s in called[function]
                if callee not in inside
            ]
    return root


def _add_call(above: Node, function: Function, spent_s: float) -> Node:
    file, line, name = function
    if file == SQL_FILE:
        node = above.child_named(name, None)
    else:
        shown = "" if file == "~" else file
        node = above.child_named(name, Frame(name, shown, line, "user", line))
    node.total_ns += round(spent_s * 1e9)
    return node


def _load_cprofile_statistics(content: bytes) -> Statistics:
    try:
        found = marshal.loads(content)  # noqa: S302  # as pstats reads it: the person's own file
        for (file, line, name), (primitive, calls, own_s, all_s, callers) in found.items():
            _ = (file + name, line + primitive + calls + own_s + all_s)
            for (file_, line_, name_), (*_, caller_s) in callers.items():
                _ = (file_ + name_, line_ + caller_s)
    except (EOFError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("not a cProfile file") from error
    checked: Statistics = found
    return checked
