"""Find the partial indexes that a statement uses, or could use but does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from queryprof.analysis.plans import Steps
from queryprof.planner.better_plans import is_better_plan
from queryprof.planner.index_trial import StatementTrial
from queryprof.planner.judging import EMPTY, Judge, StatementError
from queryprof.planner.values import replace_placeholders
from queryprof.sql.clauses import ComparedOperands, comparisons_of
from queryprof.sql.names import quoted
from queryprof.sql.operands import operand_column
from queryprof.sql.tokens import parameters_in, tokens_of

ENDS = frozenset({"SELECT", "FROM", "JOIN", "GROUP", "ORDER", "HAVING", "LIMIT", "RETURNING"})
"""Keywords that end a WHERE or ON condition."""


@dataclass(frozen=True, slots=True)
class PartialIndex:
    """A partial index, and the comparisons in its condition."""

    name: str
    comparisons: tuple[ComparedOperands, ...]


def read_partial_indexes(judge: Judge) -> list[PartialIndex]:
    rows = judge.rows(
        EMPTY, "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql > ''"
    )
    found = (PartialIndex(name, comparisons_of(sql)) for name, sql in rows)
    return [index for index in found if index.comparisons]


def find_missed_partial_index(
    judge: Judge, trial: StatementTrial, statement: str, before: Steps
) -> tuple[str, str, bool] | None:
    """Find a partial index that the planner would use if it had all rows, and whose condition the
    statement may imply. Return the index's name, its condition, and whether the statement certainly
    implies the condition.
    """
    for index in read_partial_indexes(judge):
        meant = {_implies_condition(one, statement) for one in index.comparisons}
        if None in meant:
            continue
        ((sql,),) = judge.rows(EMPTY, "SELECT sql FROM sqlite_schema WHERE name = ?", (index.name,))
        where = next(one for one in tokens_of(sql) if one.keyword == "WHERE" and not one.depth)
        with trial.undone(), suppress(StatementError):
            judge.execute(EMPTY, f"DROP INDEX {quoted(index.name)}")
            judge.execute(EMPTY, sql[: where.start])
            after = trial.plan()
            if is_index_used(index.name, [after]) and is_better_plan(before, after):
                condition = sql[where.start + len(where.text) :].strip()
                return index.name, condition, meant == {True}
    return None


def _implies_condition(condition: ComparedOperands, statement: str) -> bool | None:
    """Return whether a statement implies an index's condition. True means that the statement words
    the condition differently: with the column alone, NOT or IS TRUE. False means that the statement
    compares the column with an unknown value, and so may imply the condition. None stands for all
    other cases.
    """
    column = operand_column(condition.left)
    if not column or column not in set(_compared_names(statement)):
        return None
    own = [one for one in comparisons_of(statement) if column == operand_column(one.left)]
    if any(one.operator == condition.operator for one in own):
        return False
    others = [one for one in own if not _is_truth_test(one)]
    is_truth = condition.operator in ("=", "==", "IS") and not others
    return True if is_truth else None


def _is_truth_test(one: ComparedOperands) -> bool:
    words = [token.keyword for token in one.tokens[one.left_range.stop : one.right_range.stop]]
    return words in (["IS", "TRUE"], ["IS", "FALSE"])


def _compared_names(statement: str) -> Iterator[str]:
    """Yield the names in WHERE and ON."""
    is_inside = False
    for token in tokens_of(statement):
        if token.keyword in ("WHERE", "ON"):
            is_inside = True
        elif token.keyword in ENDS:
            is_inside = False
        elif is_inside and token.named:
            yield token.named


def is_index_used(index: str, plans: Iterable[Steps]) -> bool:
    return any(f" INDEX {index} " in f"{step} " for plan in plans for step in plan)


def with_partial_index_values(indexes: Iterable[PartialIndex], statement: str) -> str:
    """Replace parameters of a statement by values from the conditions of partial indexes. A
    parameter is replaced if the statement and a condition compare the same column with the same
    operator.
    """
    known = {
        (operand_column(one.left), one.operator): one.right[0].text
        for index in indexes
        for one in index.comparisons
        if len(one.right) == 1
    }
    values = {
        one.right[0].start: known[operand_column(one.left), one.operator]
        for one in comparisons_of(statement)
        if len(one.right) == 1 and (operand_column(one.left), one.operator) in known
    }
    spans = parameters_in(statement)
    return replace_placeholders(
        statement, [values.get(start, statement[start:end]) for start, end in spans]
    )
