"""The operators of a statement's plans in words, as DuckDB's profiler measured them."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.operators import Operators
from queryprof.analysis.units import average, counted, duration
from queryprof.model import Operator

DEEPEST = 12
"""Steps of indentation."""

PLANS = 3
"""Of a statement; the others are counted."""


def operator_lines(plans: Operators, most: int = 40) -> Iterator[str]:
    """For each plan a line that says what the figures are, and one for each operator, with those of
    an execution on average; nothing where none is known.

    Args:
        most: lines of operators, of a plan: those that take most time.
    """
    for plan in plans[:PLANS]:
        measured = max(one.executions for one in plan)
        unfinished = max(one.unfinished for one in plan)
        least = f", {unfinished:,} of them not read to the end" if unfinished else ""
        whole = counted(measured, "execution")
        beginning = "operators, by DuckDB" if plan is plans[0] else "or, by another plan"
        yield f"{beginning}, each of {whole}{least}: time, rows, rows read"
        slowest = sorted(plan, key=lambda one: -one.ns / one.executions)[:most]
        shown = {(one.place, one.name) for one in slowest}
        yield from _lines([one for one in plan if (one.place, one.name) in shown])
        if len(plan) > most:
            yield f"... ({len(plan) - most} more, which take less; --format json has all)"
    if len(plans) > PLANS:
        yield f"... ({counted(len(plans) - PLANS, 'more plan')}; --format json has all)"


def _lines(operators: list[Operator]) -> Iterator[str]:
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
        yield f"{figures}  {'  ' * min(one.depth, DEEPEST)}{one.name}"
