"""Replace advice with fixes measured on a copy of the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from queryprof.analysis.units import counted, duration, format_bytes, format_factor, shorten
from queryprof.findings.finding import Finding, Severity, importance_key, severity_of_gain
from queryprof.findings.merging import ONE_EACH
from queryprof.findings.scan_words import IN_JSON
from queryprof.model.advice import Advice, DatabaseChange, OutweighedIndexes, Proof, Rewrite

INDEXABLE_CATEGORIES = frozenset(
    {
        "full_scan",
        "temp_btree_sort",
        "automatic_index",
        "correlated_subquery",
        "missing_covering_index",
        "index_defeated",
        "narrow_index",
        "bad_index_choice",
        "stale_statistics",
        "offset_pagination",
        "heavy_query",
    }
)
"""Categories that an index or ANALYZE may resolve."""


def statements_with_plan_findings(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the statements with a finding about their plan. The plan may come from queryprof's
    planner.
    """
    planned = INDEXABLE_CATEGORIES - {"heavy_query"}
    return frozenset(one.statement for one in findings if one.category in planned)


REWRITABLE_CATEGORIES = frozenset(
    {"index_defeated", "full_scan", "automatic_index", "offset_pagination", "n_plus_one"}
)
"""Categories that a rewritten statement may resolve."""

NOT_TOGETHER = (
    "--prove measured each index alone, and each saves too little. It does not try them together."
)

NO_INDEX = (
    "Measured on a copy: neither an index nor ANALYZE saves enough here. Run these queries"
    " less often, or keep their results."
)

DRAWN = "The values come from rows of the database, not from the recording."


def with_proofs(findings: Iterable[Finding], advice: Advice) -> tuple[Finding, ...]:
    """Return the findings, most important first, with the measurements of proved advice."""
    proofs = {proof.statement: proof for proof in advice.proofs}
    rewrites = {rewrite.statement: rewrite for rewrite in advice.rewrites}
    reasons = {one.statement: one.reason for one in advice.not_measured}
    proved = (
        _with_rewrite(
            _with_proof(
                _with_reason(finding, reasons.get(finding.statement)),
                proofs.get(finding.statement),
                advice,
            ),
            rewrites.get(finding.statement),
        )
        for finding in findings
    )
    return tuple(sorted(proved, key=importance_key))


def _proved_severity(finding: Finding, is_drawn: bool) -> Severity:
    """Return the severity of a finding whose fix was measured: a doubt no longer lowers it. If the
    parameter values were drawn from the database, the severity stays the same.
    """
    if is_drawn:
        return finding.severity
    proved = severity_of_gain(finding.share, 0.0, gain_ns=finding.gain_ns)
    return min(finding.severity, proved, key=lambda one: one.rank)


def _with_rewrite(finding: Finding, rewrite: Rewrite | None) -> Finding:
    """Return the finding with the rewrite as its fix, and with the indexes that existed when the
    rewrite was measured. For an N+1 query of an object mapper, the fix also keeps its old text.
    """
    if rewrite is None or finding.category not in REWRITABLE_CATEGORIES:
        return finding
    doubt, severity = DRAWN if rewrite.is_drawn else "", _proved_severity(finding, rewrite.is_drawn)
    if finding.category == "n_plus_one" and finding.library:
        fix = f"{finding.fix} As one SQL query, {rewrite_in_words(rewrite)}."
        return replace(finding, fix=fix, doubt=doubt, severity=severity)
    indexes = finding.code if rewrite.with_changes and finding.code.startswith("CREATE") else ""
    return replace(
        finding,
        fix=(
            f"{finding.fix} In SQL, {rewrite_in_words(rewrite)}. {rewrite.how}"
            if finding.category == "n_plus_one"
            else f"{rewrite_in_words(rewrite)}. {rewrite.how}"
        ),
        code=" ".join([*([indexes] if indexes else []), f"{rewrite.sql};"]),
        doubt=doubt,
        severity=severity,
    )


def _with_reason(finding: Finding, reason: str | None) -> Finding:
    """Replace a finding's doubt by the reason why --prove did not measure the statement."""
    if reason is None or not finding.doubt or finding.category not in INDEXABLE_CATEGORIES:
        return finding
    return replace(finding, doubt=f"--prove did not measure it: {reason}.")


def _with_proof(finding: Finding, proof: Proof | None, advice: Advice) -> Finding:
    if proof is None or finding.category not in INDEXABLE_CATEGORIES:
        return finding
    used = [one for one in advice.changes if one.index in proof.uses]
    if not proof.is_proved and proof.doubt:  # the measurement is not certain
        measured = f"{finding.fix} Measured on a copy: {proof_in_words(proof)}."
        is_index = used and finding.code.startswith("CREATE")
        code = " ".join(change.sql for change in used) if is_index else finding.code
        return replace(finding, fix=measured, code=code)
    if not proof.is_proved:
        return _without_index(finding, advice)
    changes = used or [one for one in advice.changes if not one.index]
    if not changes:
        return finding
    proved = ", ".join([proof_in_words(proof), *costs_in_words(changes)])
    return replace(
        finding,
        # the index is smaller than the table, but SQLite still reads the whole index
        fix=f"{finding.fix} An index on the full JSON values: {proved}."
        if finding.fix == IN_JSON
        else proved,
        code=" ".join(change.sql for change in changes),
        doubt=DRAWN if proof.is_drawn else "",
        severity=_proved_severity(finding, proof.is_drawn),
    )


def _without_index(finding: Finding, advice: Advice) -> Finding:
    """Remove the index from the advice for a statement that no change makes faster."""
    if not finding.code.startswith("CREATE") or not advice.is_complete:
        return finding
    for one in advice.outweighed:
        if finding.statement in one.statements:
            return replace(
                finding, fix=f"An index {outweighed_in_words(one)}.", code=one.sql, doubt=""
            )
    if ONE_EACH in finding.fix:
        return replace(finding, fix=f"{finding.fix} {NOT_TOGETHER}")
    return replace(finding, fix=NO_INDEX, code="", doubt="")


def outweighed_in_words(one: OutweighedIndexes) -> str:
    """Return a sentence with the time that an index saves, and the time that it costs other
    statements.
    """
    if one.slower:
        return (
            f"would save {duration(one.win_ns)}, but would slow down other statements by"
            f" {duration(one.loss_ns)}, such as {shorten(one.slower[0], 80)}"
        )
    return (
        f"would save {duration(one.win_ns)}, but would cost"
        f" {counted(one.inserts, 'recorded insert')} {duration(one.loss_ns)}. It pays off if the"
        " table is read more often than in this recording"
    )


def proof_in_words(proof: Proof) -> str:
    """Return a sentence with a statement's times before and after."""
    times = f"{duration(proof.before.ns)} -> {duration(proof.after.ns)}"
    if proof.is_proved:
        return f"proved: {times} ({speedup_factor(proof)})"
    if proof.is_slower:
        return f"slower: {times}, with {', '.join(proof.uses)}"
    return f"not proved: {times}: {proof.doubt}" if proof.doubt else f"as before: {times}"


def speedup_factor(proof: Proof) -> str:
    """Return how many times faster a statement is."""
    return format_factor(proof.before.ns / max(proof.after.ns, 1))


def rewrite_in_words(rewrite: Rewrite) -> str:
    """Return a sentence with the times of both texts, and where they were measured."""
    before, after = rewrite.before.ns, rewrite.after.ns
    where = "with the proposed changes" if rewrite.with_changes else "on the unchanged database"
    return (
        f"proved: {duration(before)} -> {duration(after)}"
        f" ({format_factor(before / max(after, 1))}) after rewriting, {where}; same rows for"
        f" {counted(rewrite.compared, 'set')} of parameters"
    )


def costs_in_words(changes: Iterable[DatabaseChange]) -> list[str]:
    """Return sentences about the total cost of changes."""
    listed = list(changes)
    costs = [f"+{format_bytes(sum(change.bytes for change in listed))}"]
    slower_ns = [change.insert_ns for change in listed if change.insert_ns is not None]
    return costs + ([f"+{duration(sum(slower_ns))} per insert"] if slower_ns else [])
