"""How often a query repeats: in spans, and outside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from queryprof.analysis.spans import RepeatSummary
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.model import Frame
from queryprof.operations import STATEMENT_OPERATIONS

FEW = 20
"""A loop with fewer executions is cheap."""

ROWS = 5
"""The fewest executions of a query in a loop, for each execution of its parent query or for each
span.
"""


def repeats_by_statement_site(program: Program) -> Mapping[tuple[str, Frame | None], RepeatSummary]:
    """Return the queries that repeat in spans by statement and line, summed over call paths."""
    spans = {found.span.name: found.span.count for found in program.report.spans}
    repeated: dict[tuple[str, Frame | None], RepeatSummary] = {}
    for found in program.report.repeats:
        known = repeated.setdefault((found.statement, found.site.frame), found)
        if known is not found and known.span == found.span:
            repeated[found.statement, found.site.frame] = replace(
                known,
                spans=min(spans[known.span], known.spans + found.spans),
                executions=known.executions + found.executions,
                most=max(known.most, found.most),
            )
    return repeated


def repeats_outside_or_in_each_span(program: Program, group: StatementGroup) -> bool:
    """Return whether a query runs at least FEW times, either outside spans, or in spans of one name
    that each run it at least ROWS times on average.
    """
    runs: Counter[str] = Counter()
    for one in group.members:
        if one.operation in STATEMENT_OPERATIONS:
            runs[one.span] += one.count
    spans = {found.span.name: found.span.count for found in program.report.spans}
    return any(
        count >= max(FEW, ROWS * spans.get(name, 0) if name else 0) for name, count in runs.items()
    )
