"""Advice as a SQL migration, with the measurements as comments."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.model.advice import Advice
from queryprof.report.inert import visible
from queryprof.report.text.advice import (
    cautions,
    change_in_words,
    proof_line,
    rewrite_line,
    summary,
    users_of,
)

MAX_USERS = 5
MAX_STATEMENT_CHARACTERS = 200


def sql_script(advice: Advice) -> str:
    """Return the statements that make the changes. Comments at the end undo them."""
    return "\n".join(_lines(advice))


def _lines(advice: Advice) -> Iterator[str]:
    yield _comment(summary(advice))
    for caution in cautions(advice):
        yield _comment(f"Caution: {caution}")
    for change in advice.changes:
        yield ""
        yield _comment(change_in_words(change, advice))
        for proof in list(users_of(change, advice))[:MAX_USERS]:
            yield _comment(f"  {proof_line(proof)}")
            yield _comment(f"    {proof.statement[:MAX_STATEMENT_CHARACTERS]}")
        yield change.sql
    for rewrite in advice.rewrites:
        yield ""
        yield _comment(f"In the program: {rewrite_line(rewrite)}")
        yield _comment(f"  {rewrite.statement[:MAX_STATEMENT_CHARACTERS]}")
        yield _comment("becomes")
        yield _comment(f"  {rewrite.sql}")
    if advice.changes:
        yield ""
        yield _comment("To undo it:")
        for change in reversed(advice.changes):
            yield _comment(f"  {change.undo}")


def _comment(text: str) -> str:
    return f"-- {visible(text)}"
