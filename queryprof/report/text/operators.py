"""The operators of a plan in words, as DuckDB's profiler measured them."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.operators import Operators
from queryprof.analysis.units import average, counted, duration

DEEPEST = 12
"""Steps of indentation."""


def operator_lines(operators: Operators) -> Iterator[str]:
    """A line that says what the figures are, and one for each operator; nothing where none is
    known. Its figures are of an execution on average.
    """
    if not operators:
        return
    measured = max(one.executions for one in operators)
    unfinished = max(one.unfinished for one in operators)
    least = f", {unfinished:,} of them not read to the end" if unfinished else ""
    whole = counted(measured, "execution")
    yield f"operators, by DuckDB, each of {whole}{least}: time, rows, rows read"
    rows = [
        (
            duration(one.ns / one.executions),
            average(round(one.rows / one.executions, 1)),
            average(round(one.scanned / one.executions, 1)) if one.scanned else "",
        )
        for one in operators
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for one, row in zip(operators, rows, strict=True):
        figures = "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        few = "" if one.executions == measured else f", in {one.executions:,} of them"
        yield f"{figures}  {'  ' * min(one.depth, DEEPEST)}{one.name}{few}"
