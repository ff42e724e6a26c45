"""Advice as text: savings and costs of each change, and each statement's time before and after."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import counted, duration, format_bytes, percent
from queryprof.findings.proved import outweighed_in_words, proof_in_words, rewrite_in_words
from queryprof.model.advice import Advice, DatabaseChange, Proof, Rewrite

NO_CHANGE = "Neither a single index nor ANALYZE saves 3% or more of the recorded time."
NO_INDEX = (
    "Neither an index nor ANALYZE saves 3% or more of the recorded time, but rewriting a statement"
    " does."
)
NO_CHANGE_YET = (
    "As far as measured, neither an index nor ANALYZE saves 3% or more of the recorded time."
)
MIN_MEASURED_SHARE = 0.8
"""Share of the recorded time that must be measured before NO_CHANGE is printed."""

NOTHING_MEASURED = (
    "No statement was measured. queryprof does not measure INSERTs or their triggers."
)

NO_CHANGE_BUT = "Every index that saves time costs the other recorded statements more."


def advice_title(advice: Advice) -> str:
    """Return the title of the advice: "Proved" only if nothing that it saves is doubtful."""
    if not advice.proofs:
        return "Not proved"
    return "Partly proved" if _unproved_ns(advice) else "Proved"


def _unproved_ns(advice: Advice) -> float:
    """Return the saved time of the statements whose improvement is not proved, in ns."""
    savings = (one.recorded_ns - one.after_ns for one in advice.proofs if one.doubt and one.uses)
    return sum(max(0.0, saved) for saved in savings)


def saving_summary(advice: Advice) -> str:
    """Return the saving of all changes together, and how much of it is not proved."""
    measured = f"Measured on a copy of {advice.database} with SQLite {advice.sqlite_version}"
    if not advice.changes:
        nothing = NO_INDEX if advice.rewrites else _no_change_sentence(advice)
        nothing = NO_CHANGE_BUT if advice.outweighed else nothing
        return f"{measured}. {nothing}" if advice.proofs else f"{measured}. {NOTHING_MEASURED}"
    unproved = _unproved_ns(advice)
    return (
        f"{measured}: {counted(len(advice.changes), 'change')} cut the recorded time from"
        f" {duration(advice.before_ns)} to {duration(advice.after_ns)}"
        + (f"; {duration(unproved)} of this is not proved" if unproved else "")
    )


def _no_change_sentence(advice: Advice) -> str:
    """Return the sentence for advice without changes. It depends on how much was measured."""
    unknown_ns = sum(one.recorded_ns for one in advice.not_measured)
    is_most = advice.before_ns >= MIN_MEASURED_SHARE * (advice.before_ns + unknown_ns)
    return NO_CHANGE if is_most and advice.is_complete else NO_CHANGE_YET


def change_in_words(change: DatabaseChange, advice: Advice) -> str:
    """Return the saving and cost of one change."""
    share = change.win_ns / advice.before_ns if advice.before_ns else 0.0
    parts = [f"saves {duration(change.win_ns)} ({percent(share)})"]
    users = list(statements_using_index(change, advice))
    if unproved := sum(bool(proof.doubt) for proof in users):
        whole = unproved == len(users)
        parts.append(
            "not proved" if whole else f"not proved for {unproved} of {len(users)} statements"
        )
    if change.bytes:
        parts.append(f"+{format_bytes(change.bytes)}")
    if change.insert_ns is not None:
        parts.append(
            f"+{duration(change.insert_ns)} per insert ({counted(change.inserts, 'insert')}"
            " recorded)"
        )
    rewritten = {one.statement for one in advice.rewrites if not one.with_changes}
    if users and {proof.statement for proof in users} <= rewritten:
        parts.append("not needed once its statement is rewritten")
    return ", ".join(parts)


def statements_using_index(change: DatabaseChange, advice: Advice) -> Iterator[Proof]:
    """Yield the statements that use an index, largest saving first."""
    users = [proof for proof in advice.proofs if change.index and change.index in proof.uses]
    yield from sorted(users, key=lambda proof: proof.after_ns - proof.recorded_ns)


def proof_line(proof: Proof) -> str:
    """Describe a statement's time before and after, and whether the result is proved."""
    text = proof_in_words(proof)
    if proof.is_drawn:
        text += ", measured with values from the database, not from the recording"
    return text


def rewrite_line(rewrite: Rewrite) -> str:
    """Describe a rewritten statement, and how to change the program."""
    text = rewrite_in_words(rewrite)
    if rewrite.is_drawn:
        text += ", measured with values from the database, not from the recording"
    return f"{text}. {rewrite.how}"


def advice_cautions(advice: Advice) -> Iterator[str]:
    """Yield sentences on the limits of the measurements."""
    if advice.other_version:
        yield (
            f"measured with SQLite {advice.sqlite_version}, but the program ran with"
            f" SQLite {advice.other_version}: plans may differ."
            " To measure with another Python, use --python"
        )
    if advice.sample_every > 1:
        yield (
            "the database is large: changes were chosen on a sample (one row in"
            f" {advice.sample_every:,} of large tables); all figures are for the whole copy"
        )
    for one in advice.outweighed:
        yield f"{one.sql} {outweighed_in_words(one)}"
    if not advice.is_complete:
        yield "the time limit ended the search: this is the best result so far (--budget)"
