"""Advice as a SQL migration, with the measurements as comments."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.model.advice import Advice
from queryprof.report.inert import escape_control_characters
from queryprof.report.text.advice import (
    advice_cautions,
    change_in_words,
    proof_line,
    rewrite_line,
    saving_summary,
    statements_using_index,
)

MAX_USERS = 5
MAX_STATEMENT_CHARACTERS = 200


def sql_script(advice: Advice) -> str:
    """Return the statements that make the changes. Comments at the end undo them."""
    return "\n".join(_script_lines(advice))


def _script_lines(advice: Advice) -> Iterator[str]:
    yield _sql_comment(saving_summary(advice))
    for caution in advice_cautions(advice):
        yield _sql_comment(f"Caution: {caution}")
    for change in advice.changes:
        yield ""
        yield _sql_comment(change_in_words(change, advice))
        for proof in list(statements_using_index(change, advice))[:MAX_USERS]:
            yield _sql_comment(f"  {proof_line(proof)}")
            yield _sql_comment(f"    {proof.statement[:MAX_STATEMENT_CHARACTERS]}")
        yield change.sql
    for rewrite in advice.rewrites:
        yield ""
        yield _sql_comment(f"In the program: {rewrite_line(rewrite)}")
        yield _sql_comment(f"  {rewrite.statement[:MAX_STATEMENT_CHARACTERS]}")
        yield _sql_comment("becomes")
        yield _sql_comment(f"  {rewrite.sql}")
    if advice.changes:
        yield ""
        yield _sql_comment("To undo it:")
        for change in reversed(advice.changes):
            yield _sql_comment(f"  {change.undo}")


def _sql_comment(text: str) -> str:
    return f"-- {escape_control_characters(text)}"
