"""Collapsed stacks (B. Gregg's flamegraph.pl): a line for each path, with its time in ns."""

from __future__ import annotations

from queryprof.report.export.weights import Weight, names


def collapsed_file(weights: list[Weight]) -> bytes:
    """The lines; what would end a name is written as a comma."""
    lines = [
        f"{';'.join(names(node).replace(';', ',') for node in weight.nodes)} {weight.ns}\n"
        for weight in weights
    ]
    return "".join(lines).encode()
