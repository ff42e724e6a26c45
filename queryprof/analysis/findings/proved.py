"""Findings whose fix was measured on a copy of the database: it is said instead of the advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.units import duration, size
from queryprof.model.advice import Advice, Change, Proof

OF_INDEXES = frozenset(
    {"full_scan", "temp_btree_sort", "automatic_index", "correlated_subquery", "missing_covering_index",
     "index_defeated", "bad_index_choice", "offset_pagination"}
)  # fmt: skip
"""Categories whose cause an index or ANALYZE may take away."""


def with_proofs(findings: Iterable[Finding], advice: Advice) -> tuple[Finding, ...]:
    """The findings; of those about statements that advice makes faster, with what was measured."""
    proofs = {proof.statement: proof for proof in advice.proofs if proof.is_proved}
    return tuple(
        _with_proof(finding, proofs.get(finding.statement), advice) for finding in findings
    )


def _with_proof(finding: Finding, proof: Proof | None, advice: Advice) -> Finding:
    if proof is None or finding.category not in OF_INDEXES:
        return finding
    changes = [one for one in advice.changes if one.index in proof.uses] or [
        one for one in advice.changes if not one.index
    ]
    if not changes:
        return finding
    return replace(
        finding,
        fix=", ".join([proof_in_words(proof), *costs_in_words(changes)]),
        code=" ".join(change.sql for change in changes),
        doubt="The values are of the database: none were recorded." if proof.is_drawn else "",
    )


def proof_in_words(proof: Proof) -> str:
    """A statement before and after."""
    times = f"{duration(proof.before.ns)} -> {duration(proof.after.ns)}"
    if proof.is_proved:
        return f"proved: {times} (x{proof.before.ns / max(proof.after.ns, 1):,.3g})"
    return f"not proved: {times}: {proof.doubt}" if proof.doubt else f"as before: {times}"


def costs_in_words(changes: Iterable[Change]) -> list[str]:
    """What changes cost together."""
    listed = list(changes)
    said = [f"+{size(sum(change.bytes for change in listed))}"]
    slower_ns = [change.insert_ns for change in listed if change.insert_ns is not None]
    return said + ([f"+{duration(sum(slower_ns))} an insert"] if slower_ns else [])
