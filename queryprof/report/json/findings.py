"""Findings as JSON, and the document's types, from which its schema is generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from queryprof.findings import finding as found
from queryprof.model import advice as model
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.report.json import report as _frames_as_json  # noqa: F401  registers frames' shape
from queryprof.report.json.report_types import Site
from queryprof.report.json.writing import (
    build_from_attributes,
    document_pieces,
    document_shape_of,
    to_document_value,
)


@document_shape_of(found.Finding)
class Finding:
    """One cause of slowness, and what to change."""

    category: str
    severity: Literal["high", "medium", "low"]
    share: Annotated[float, "largest share of the program's time that a fix can save, 0 to 1"]
    gain_ns: Annotated[int, "largest time that a fix can save"]
    statement: Annotated[str, "empty if the finding is not about a statement"]
    site: Site
    loop: Annotated[Site | None, "the loop around the call; null if unknown"]
    evidence: Annotated[tuple[str, ...], "what was measured"]
    fix: Annotated[str, "what to do"]
    code: Annotated[str, "SQL or Python of the fix; empty if none"]
    migration: Annotated[str, "index as a Django or Alembic migration; empty if none"]
    doubt: Annotated[str, "why the finding is uncertain; empty if it is certain"]
    parent: Annotated[str, "outer query of an N+1; empty if unknown"]
    whole: str
    identity: Annotated[str, "stable while statement, file name and function stay the same"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that the project's configuration accepts."""

    identity: str
    reason: str
    is_stale: Annotated[bool, "no current finding has this identity"]


@document_shape_of(model.Advice)
class Advice:
    """Changes to a database, proved on a copy. Times are nanoseconds."""

    database: str
    changes: Annotated[
        tuple[model.DatabaseChange, ...], "in order; win_ns: saving added to the changes before it"
    ]
    outweighed: Annotated[
        tuple[model.OutweighedIndexes, ...],
        "indexes that cost the recorded inserts more than they save",
    ]
    proofs: tuple[model.Proof, ...]
    rewrites: tuple[model.Rewrite, ...]
    not_measured: tuple[model.NotMeasured, ...]
    sqlite_version: Annotated[str, "version that ran the measurements"]
    other_version: Annotated[str, "the program's version; empty if it is the same"]
    sample_every: Annotated[int, "changes were chosen on a sample of 1 in N rows; 1 means all rows"]
    is_complete: Annotated[bool, "the search finished within its time limit"]
    took_s: float
    before_ns: Annotated[float, "the recorded time of the statements that were measured"]
    after_ns: Annotated[float, "expected time with all changes"]
    curve_ns: Annotated[tuple[float, ...], "expected time after 0, 1, 2 ... changes"]


@dataclass(frozen=True, slots=True)
class ServerStatement:
    """A PostgreSQL server's facts about a statement."""

    statement: str
    plan: Annotated[tuple[str, ...], "its nodes, indented; empty if unknown"]
    rows: Annotated[float | None, "rows that the planner expects; null if unknown"]
    scans: Annotated[tuple[str, ...], "tables that are scanned in full"]
    refused: Annotated[str, "why the plan is unknown; empty if it is known"]
    query_id: Annotated[str, "of pg_stat_statements; empty if unknown"]
    server_ns: Annotated[float | None, "server's mean time per call; null if unknown"]
    server_calls: Annotated[int | None, "calls by all programs; null if unknown"]


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server."""

    version: str
    statements: Annotated[tuple[ServerStatement, ...], "most time first"]
    times_off: Annotated[str, "why times are unknown; empty if they are known"]
    since: Annotated[str, "when the times were reset; empty if unknown"]
    left_out: Annotated[int, "number of statements without a requested plan"]


@dataclass(frozen=True, slots=True)
class Document:
    """The output of `queryprof analyze --format json`. Times are nanoseconds."""

    format_version: Literal[1]
    cautions: Annotated[tuple[str, ...], "limits of the findings"]
    findings: Annotated[tuple[Finding, ...], "largest saving first"]
    accepted: tuple[Accepted, ...]
    advice: Annotated[Advice | None, "changes measured on a copy; null without --prove"]
    server: Annotated[Server | None, "facts from PostgreSQL; null without --dsn"]


def findings_json(
    findings: Sequence[found.Finding],
    cautions: Sequence[str],
    accepted: Sequence[tuple[str, str, bool]],
    advice: model.Advice | None = None,
    server: ServerFacts = NO_SERVER,
) -> str:
    """Return the findings as a JSON document.

    Args:
        accepted: (identity, reason, is_stale) of each accepted finding.
    """
    document: Any = Document(
        1,
        tuple(cautions),
        tuple(findings),  # type: ignore[arg-type]  # written in the shape of Finding
        tuple(Accepted(*one) for one in accepted),
        advice,  # type: ignore[arg-type]  # written in the shape of Advice
        _server_document(server) if server.version else None,
    )
    return "".join(document_pieces(document))


def _server_document(facts: ServerFacts) -> Server:
    statements = []
    for one in (*facts.plans, *facts.refused):
        plan, time = facts.plans.get(one), facts.times.get(one)
        statements.append(
            ServerStatement(
                one,
                tuple(f"{'  ' * depth}{step}" for depth, step in plan.steps) if plan else (),
                plan.rows if plan else None,
                tuple(scan.table for scan in plan.scans) if plan else (),
                facts.refused.get(one, ""),
                str(plan.query_id) if plan and plan.query_id is not None else "",
                time.mean_ns if time else None,
                time.calls if time else None,
            )
        )
    return Server(facts.version, tuple(statements), facts.times_off, facts.since, facts.left_out)


@to_document_value.register
def _(finding: found.Finding) -> Any:
    return build_from_attributes(Finding, finding)


@to_document_value.register
def _(advice: model.Advice) -> Any:
    return build_from_attributes(Advice, advice)
