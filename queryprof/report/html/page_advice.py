"""Page data of the proved advice: the time left after each change, and the statements."""

from __future__ import annotations

from typing import Any

from queryprof.findings.proved import speedup_factor
from queryprof.model.advice import Advice, Proof
from queryprof.report.html.numbers import TextNumbers
from queryprof.report.text.advice import (
    advice_cautions,
    advice_title,
    change_in_words,
    saving_summary,
)

MAX_PROOFS = 50


def advice_data(advice: Advice, numbers: TextNumbers) -> dict[str, Any]:
    """Return the remaining time after each change, and each statement's time before and after."""
    before_ns = advice.before_ns or 1.0
    changed = [
        proof for proof in advice.proofs if proof.is_proved or proof.doubt or proof.is_slower
    ]
    changed.sort(key=lambda proof: -abs(proof.after_ns - proof.recorded_ns))
    return {
        "title": numbers.text_number(f"{advice_title(advice)} on a copy"),
        "summary": numbers.text_number(saving_summary(advice)),
        "cautions": [numbers.text_number(caution) for caution in advice_cautions(advice)],
        "left_ns": [round(ns) for ns in advice.curve_ns],
        "left": [round(ns / before_ns, 5) for ns in advice.curve_ns],
        "changes": [
            {
                "sql": numbers.text_number(change.sql),
                "result": numbers.text_number(change_in_words(change, advice)),
            }
            for change in advice.changes
        ],
        "proofs": [
            {
                **numbers.number_and_text(proof.statement),
                "before_ns": round(proof.before.ns),
                "after_ns": round(proof.after.ns),
                "result": numbers.text_number(_proof_verdict(proof)),
            }
            for proof in changed[:MAX_PROOFS]
        ],
    }


def _proof_verdict(proof: Proof) -> str:
    verdict = (
        f"proved, {speedup_factor(proof)}" if proof.is_proved else f"not proved: {proof.doubt}"
    )
    verdict = "slower" if proof.is_slower else verdict
    return f"{verdict}; values from the database" if proof.is_drawn else verdict
