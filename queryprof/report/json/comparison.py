"""A comparison as JSON, with units in the names, and the types of the document, from which
comparison-schema.json is generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from queryprof.analysis.changes import Change as Found
from queryprof.analysis.changes import Comparison, SiteChange
from queryprof.analysis.changes import StatementChange as FoundStatement
from queryprof.report.json.writing import document_text, made

Verdict = Literal["better", "worse", "same", "unclear"]
Plan = Annotated[tuple[str, ...], "a line a step, indented by what it is part of"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Plans:
    """The different query plans of each side; empty: unknown."""

    before: tuple[Plan, ...]
    after: tuple[Plan, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of both sides, or of one."""

    statement: str
    kind: Literal["new", "gone", "known"]
    verdict: Verdict
    changes: tuple[Change, ...]
    call_sites: Annotated[tuple[CallSite, ...], "where its executions changed most"]
    plans: Plans


@dataclass(frozen=True, slots=True)
class Document:
    """What `queryprof compare --format json` writes."""

    format_version: Literal[1]
    before_runs: int
    after_runs: int
    same_sqlite: Annotated[bool, "whether all processes had the same version of SQLite"]
    whole: Annotated[tuple[Change, ...], "metrics of whole runs"]
    statements: Annotated[
        tuple[Statement, ...], "new ones first, then gone ones, then known ones, the worst first"
    ]


def comparison_json(comparison: Comparison) -> str:
    """The comparison as a JSON document."""
    document = made(
        Document,
        comparison,
        format_version=1,
        whole=tuple(map(_change, comparison.whole)),
        statements=tuple(map(_statement, comparison.statements)),
    )
    return document_text(document, indent=2)


def _change(change: Found) -> Change:
    return made(Change, change, verdict=str(change.verdict))


def _statement(change: FoundStatement) -> Statement:
    return made(
        Statement,
        change,
        verdict=str(change.verdict),
        changes=tuple(map(_change, change.changes)),
        call_sites=tuple(map(_site, change.sites)),
        plans=made(Plans, change.plans, verdict=str(change.plans.verdict)),
    )


def _site(change: SiteChange) -> CallSite:
    frame = change.site.frame
    return CallSite(
        function=frame.function if frame else None,
        file=frame.file if frame else None,
        line=(frame.line or None) if frame else None,
        executions_before=change.before,
        executions_after=change.after,
    )
