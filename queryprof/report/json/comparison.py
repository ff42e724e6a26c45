"""A comparison as JSON, and the document's types.

The schema is generated from the types. Names end with their unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from queryprof.comparing import comparison_result as changes
from queryprof.report.json.writing import (
    build_from_attributes,
    document_pieces,
    document_shape_of,
    to_document_value,
)

Verdict = Literal["better", "worse", "same", "unclear"]
Plan = Annotated[tuple[str, ...], "one line per step, indented below its parent step"]


@document_shape_of(changes.MetricChange)
class Change:
    """A metric before and after."""

    metric: Annotated[
        str,
        "ends with its unit: _ns nanoseconds, _bytes bytes, _per_database_s per second in the"
        " database. Metrics without a unit are counts.",
    ]
    gate: Annotated[Literal["counts", "vmsteps", "io", "time"], "its name in --fail-on"]
    before: Annotated[float | None, "mean over the runs; null if unknown"]
    after: Annotated[float | None, "mean over the runs; null if unknown"]
    ratio: Annotated[
        float | None, "after / before; null if unknown, or if nothing was measured before"
    ]
    interval: Annotated[
        tuple[float, ...] | None,
        "95% interval of the ratio; null if a side has fewer than six runs",
    ]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CallSite:
    """A place where a statement is executed."""

    function: str | None
    file: str | None
    line: int | None
    executions_before: float
    executions_after: float


@document_shape_of(changes.PlanChange)
class Plans:
    """The different query plans of each side; empty if unknown."""

    before: tuple[Plan, ...]
    after: tuple[Plan, ...]
    verdict: Verdict


@document_shape_of(changes.StatementChange)
class Statement:
    """A statement of one side or of both."""

    statement: str
    kind: Literal["new", "gone", "known"]
    changes: tuple[Change, ...]
    plans: Plans
    verdict: Verdict
    call_sites: Annotated[tuple[CallSite, ...], "where its executions changed most"]


@document_shape_of(changes.Comparison)
class Document:
    """The output of `queryprof compare --format json`."""

    before_runs: int
    after_runs: int
    same_sqlite: Annotated[bool, "whether all processes had the same version of SQLite"]
    whole: Annotated[tuple[Change, ...], "metrics of whole runs"]
    statements: Annotated[
        tuple[Statement, ...], "new, then gone, then known statements, each with the worst first"
    ]
    format_version: Literal[1]


def comparison_json(comparison: changes.Comparison) -> str:
    """Return the comparison as a JSON document."""
    return "".join(document_pieces(build_from_attributes(Document, comparison, format_version=1)))


@to_document_value.register
def _(change: changes.StatementChange) -> Any:
    return build_from_attributes(Statement, change, call_sites=change.sites)


@to_document_value.register
def _(change: changes.SiteChange) -> Any:
    frame = change.site.frame
    return CallSite(
        function=frame.function if frame else None,
        file=frame.file if frame else None,
        line=(frame.line or None) if frame else None,
        executions_before=change.before,
        executions_after=change.after,
    )
