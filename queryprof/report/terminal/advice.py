"""Advice for a terminal: the changes in order, and each statement's time before and after."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.units import counted, duration
from queryprof.model.advice import Advice, Proof
from queryprof.report.terminal.console import Text, console_for, heading_line, print_parts
from queryprof.report.terminal.sql import SqlText
from queryprof.report.text.advice import (
    advice_cautions,
    advice_title,
    change_in_words,
    proof_line,
    saving_summary,
)

MAX_PROOFS = 10
MAX_REASONS = 5


def print_advice(advice: Advice, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the changes with their savings and costs, and the measurements of each statement."""
    console = console_for(file, width)
    parts: list[RenderableType] = [
        heading_line(advice_title(advice)),
        Text(saving_summary(advice), overflow="fold"),
    ]
    parts += [
        Text(f"! {caution}", "yellow", overflow="fold") for caution in advice_cautions(advice)
    ]
    for number, change in enumerate(advice.changes, 1):
        parts += [
            Text.assemble((f"{number:>3}  ", "bold"), (change.sql, "cyan"), overflow="fold"),
            Padding(Text(change_in_words(change, advice), "green", overflow="fold"), (0, 0, 0, 5)),
        ]
    changed = [
        proof for proof in advice.proofs if proof.is_proved or proof.doubt or proof.is_slower
    ]
    if changed:
        shown = sorted(changed, key=lambda proof: -abs(proof.after_ns - proof.recorded_ns))[
            :MAX_PROOFS
        ]
        parts.append(heading_line("Statements, before and after"))
        parts += [_proof_lines(proof, console.width) for proof in shown]
        if len(changed) > len(shown):
            parts.append(Text(f"     {len(changed) - len(shown)} more: --format json", "dim"))
    if advice.not_measured:
        parts.append(
            heading_line(f"Not measured: {counted(len(advice.not_measured), 'statement')}")
        )
        for one in advice.not_measured[:MAX_REASONS]:
            parts.append(SqlText(one.statement, console.width - 7))
            reason = f"{one.reason} ({duration(one.recorded_ns)} recorded)"
            parts.append(Padding(Text(reason, "dim", overflow="fold"), (0, 0, 0, 5)))
    print_parts(console, parts)


def _proof_lines(proof: Proof, width: int) -> RenderableType:
    style = "green" if proof.is_proved else "yellow"
    return Group(
        Padding(Text(proof_line(proof), style, overflow="fold"), (0, 0, 0, 5)),
        Padding(SqlText(proof.statement, width - 9), (0, 0, 0, 7)),
    )
