"""Findings as JSON, and the types of the document, from which its schema is generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from queryprof.analysis.findings import finding as found
from queryprof.model import advice as model
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.report.json import report as _frames_as_json  # noqa: F401  registers frames' shape
from queryprof.report.json.report_types import Site
from queryprof.report.json.writing import document_pieces, made, shape_of, shaped


@shape_of(found.Finding)
class Finding:
    """One cause of slowness, and what to change."""

    category: str
    severity: Literal["high", "medium", "low"]
    share: Annotated[float, "of the program's time that a fix can win at the most, 0 to 1"]
    gain_ns: Annotated[int, "the same as time"]
    statement: Annotated[str, "empty: it is about none"]
    site: Site
    loop: Annotated[Site | None, "the loop around the call; null: not known"]
    evidence: Annotated[tuple[str, ...], "what was measured"]
    fix: Annotated[str, "what to do"]
    code: Annotated[str, "SQL or Python, where it can be written; else empty"]
    migration: Annotated[str, "an index as Django's or Alembic's migration; else empty"]
    doubt: Annotated[str, "what is not sure; empty: nothing"]
    parent: Annotated[str, "the statement for whose rows it is executed; empty: not known"]
    whole: str
    identity: Annotated[str, "stable while the statement, the file's name and the function stay"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that the project's configuration accepts."""

    identity: str
    reason: str
    is_stale: Annotated[bool, "no finding has this identity any more"]


@shape_of(model.Advice)
class Advice:
    """What to change in a database, proved on a copy. Times are nanoseconds."""

    database: str
    changes: Annotated[tuple[model.Change, ...], "in their order; win_ns: beside those before it"]
    outweighed: Annotated[
        tuple[model.Outweighed, ...],
        "indexes to which the recorded inserts lose more than they win",
    ]
    proofs: tuple[model.Proof, ...]
    rewrites: tuple[model.Rewrite, ...]
    not_measured: tuple[model.NotMeasured, ...]
    sqlite_version: Annotated[str, "of the library that has measured"]
    other_version: Annotated[str, "the program's, where it is another; else empty"]
    sample_every: Annotated[int, "changes were chosen on one row in so many; 1: on all"]
    is_complete: Annotated[bool, "the search ended within its time"]
    took_s: float
    before_ns: Annotated[float, "the recorded time of the statements that were measured"]
    after_ns: Annotated[float, "what it would be with all changes"]
    curve_ns: Annotated[tuple[float, ...], "the same with no change, the first, the first two ..."]


@dataclass(frozen=True, slots=True)
class ServerStatement:
    """What a PostgreSQL server says of a statement."""

    statement: str
    plan: Annotated[tuple[str, ...], "its nodes, indented; empty: unknown"]
    rows: Annotated[float | None, "that the planner expects; null: unknown"]
    scans: Annotated[tuple[str, ...], "tables that are read from end to end"]
    refused: Annotated[str, "why the plan is unknown; empty: it is known"]
    query_id: Annotated[str, "of pg_stat_statements; empty: unknown"]
    server_ns: Annotated[float | None, "the server's time of a call, its mean; null: unknown"]
    server_calls: Annotated[int | None, "of all programs; null: unknown"]


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server."""

    version: str
    statements: Annotated[tuple[ServerStatement, ...], "those that take most time first"]
    times_off: Annotated[str, "why no times are known; empty: they are"]
    since: Annotated[str, "when the times were reset; empty: it is not known"]
    left_out: Annotated[int, "statements of which no plan was requested"]


@dataclass(frozen=True, slots=True)
class Document:
    """What `queryprof analyze --format json` writes. Times are nanoseconds."""

    format_version: Literal[1]
    cautions: Annotated[tuple[str, ...], "what a reader must know to believe the findings"]
    findings: Annotated[tuple[Finding, ...], "those that can win most first"]
    accepted: tuple[Accepted, ...]
    advice: Annotated[Advice | None, "what was measured on a copy; null: without --prove"]
    server: Annotated[Server | None, "what PostgreSQL says; null: without --dsn"]


def findings_json(
    findings: Sequence[found.Finding],
    cautions: Sequence[str],
    accepted: Sequence[tuple[str, str, bool]],
    advice: model.Advice | None = None,
    server: ServerFacts = NO_SERVER,
) -> str:
    """The findings as a JSON document.

    Args:
        accepted: identity, reason, and whether it is stale.
    """
    document: Any = Document(
        1,
        tuple(cautions),
        tuple(findings),  # type: ignore[arg-type]  # written in the shape of Finding
        tuple(Accepted(*one) for one in accepted),
        advice,  # type: ignore[arg-type]  # written in the shape of Advice
        _server(server) if server.version else None,
    )
    return "".join(document_pieces(document))


def _server(facts: ServerFacts) -> Server:
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


@shaped.register
def _(finding: found.Finding) -> Any:
    return made(Finding, finding)


@shaped.register
def _(advice: model.Advice) -> Any:
    return made(Advice, advice)
