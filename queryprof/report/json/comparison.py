"""A comparison as JSON, with units in the names, and the types of the document, from which
its schema is generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from queryprof.analysis import comparison_result as changes
from queryprof.report.json.writing import document_pieces, made, shape_of, shaped

Verdict = Literal["better", "worse", "same", "unclear"]
Plan = Annotated[tuple[str, ...], "a line a step, indented by what it is part of"]


@shape_of(changes.Change)
class Change:
    """A metric of both sides."""

    metric: Annotated[
        str,
        "its unit at the end: _ns nanoseconds, _bytes bytes, _per_database_s for each second in the"
        " database; else a count",
    ]
    gate: Annotated[Literal["counts", "vmsteps", "io", "time"], "what --fail-on calls it"]
    before: Annotated[float | None, "mean over the runs; null: unknown"]
    after: Annotated[float | None, "mean over the runs; null: unknown"]
    ratio: Annotated[float | None, "after / before; null: unknown, or nothing before"]
    interval: Annotated[
        tuple[float, ...] | None,
        "of the ratio, 95%, from four runs a side on; null: it has none",
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


@shape_of(changes.PlanChange)
class Plans:
    """The different query plans of each side; empty: unknown."""

    before: tuple[Plan, ...]
    after: tuple[Plan, ...]
    verdict: Verdict


@shape_of(changes.StatementChange)
class Statement:
    """A statement of both sides, or of one."""

    statement: str
    kind: Literal["new", "gone", "known"]
    changes: tuple[Change, ...]
    plans: Plans
    verdict: Verdict
    call_sites: Annotated[tuple[CallSite, ...], "where its executions changed most"]


@shape_of(changes.Comparison)
class Document:
    """What `queryprof compare --format json` writes."""

    before_runs: int
    after_runs: int
    same_sqlite: Annotated[bool, "whether all processes had the same version of SQLite"]
    whole: Annotated[tuple[Change, ...], "metrics of whole runs"]
    statements: Annotated[
        tuple[Statement, ...], "new ones first, then gone ones, then known ones, the worst first"
    ]
    format_version: Literal[1]


def comparison_json(comparison: changes.Comparison) -> str:
    """The comparison as a JSON document."""
    return "".join(document_pieces(made(Document, comparison, format_version=1)))


@shaped.register
def _(change: changes.StatementChange) -> Any:
    return made(Statement, change, call_sites=change.sites)


@shaped.register
def _(change: changes.SiteChange) -> Any:
    frame = change.site.frame
    return CallSite(
        function=frame.function if frame else None,
        file=frame.file if frame else None,
        line=(frame.line or None) if frame else None,
        executions_before=change.before,
        executions_after=change.after,
    )
