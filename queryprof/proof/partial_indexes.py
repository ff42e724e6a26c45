"""Indexes on some rows of a table: which a statement uses, and which it misses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from queryprof.analysis.plans import Steps
from queryprof.proof.better_plans import is_better
from queryprof.proof.judging import EMPTY, Judge, StatementError
from queryprof.proof.trial import Trial
from queryprof.proof.tried_plans import in_quotes
from queryprof.proof.values import replaced
from queryprof.sql.clauses import Comparison, column_of, comparisons_of, names_in
from queryprof.sql.tokens import parameters_in, tokens_of

ENDS = frozenset({"SELECT", "FROM", "JOIN", "GROUP", "ORDER", "HAVING", "LIMIT", "RETURNING"})
"""What ends a condition."""


@dataclass(frozen=True, slots=True)
class PartialIndex:
    """An index on some rows of a table, and what it compares to choose them."""

    name: str
    comparisons: tuple[Comparison, ...]


def partial_indexes(judge: Judge) -> list[PartialIndex]:
    rows = judge.rows(
        EMPTY, "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql > ''"
    )
    found = (PartialIndex(name, comparisons_of(sql)) for name, sql in rows)
    return [index for index in found if index.comparisons]


def missed(judge: Judge, trial: Trial, statement: str, before: Steps) -> tuple[str, str] | None:
    """A partial index that the planner would take, had it all rows, of a condition on columns that
    the statement's conditions name as well; with that condition.
    """
    named = set(_conditions(statement))
    for index in partial_indexes(judge):
        ((sql,),) = judge.rows(EMPTY, "SELECT sql FROM sqlite_schema WHERE name = ?", (index.name,))
        tokens = tokens_of(sql)
        where = next((one for one in tokens if one.keyword == "WHERE" and not one.depth), None)
        if where is None or not set(names_in(tokens[tokens.index(where) + 1 :])) <= named:
            continue
        with trial.undone(), suppress(StatementError):
            judge.do(EMPTY, f"DROP INDEX {in_quotes(index.name)}")
            judge.do(EMPTY, sql[: where.start])
            after = trial.plan()
            if is_used(index.name, [after]) and is_better(before, after):
                return index.name, sql[where.start + len(where.text) :].strip()
    return None


def _conditions(statement: str) -> Iterator[str]:
    """The names in WHERE and ON."""
    is_inside = False
    for token in tokens_of(statement):
        if token.keyword in ("WHERE", "ON"):
            is_inside = True
        elif token.keyword in ENDS:
            is_inside = False
        elif is_inside and token.named:
            yield token.named


def is_used(index: str, plans: Iterable[Steps]) -> bool:
    return any(f" INDEX {index} " in f"{step} " for plan in plans for step in plan)


def with_values_of(indexes: Iterable[PartialIndex], statement: str) -> str:
    """A statement with the values of partial indexes where it compares the same column in the same
    way.
    """
    known = {
        (column_of(one.left), one.operator): one.right[0].text
        for index in indexes
        for one in index.comparisons
        if len(one.right) == 1
    }
    values = {
        one.right[0].start: known[column_of(one.left), one.operator]
        for one in comparisons_of(statement)
        if len(one.right) == 1 and (column_of(one.left), one.operator) in known
    }
    spans = parameters_in(statement)
    return replaced(statement, [values.get(start, statement[start:end]) for start, end in spans])
