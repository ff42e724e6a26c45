"""Find columns for which an index would help if they had another type or collation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from queryprof.analysis.plans import Steps, plan_signs
from queryprof.planner.better_plans import comparison_count
from queryprof.planner.catalogue import COLUMNS_SQL
from queryprof.planner.judging import EMPTY, Judge, StatementError
from queryprof.planner.tried_index import TriedIndex, TriedTerm
from queryprof.sql.names import quoted

OTHER_TYPES = ("TEXT", "INTEGER", "")


class UndoableTrial(Protocol):
    """Tries changes to the empty copy with one statement (see index_trial.StatementTrial)."""

    judge: Judge

    def undone(self) -> AbstractContextManager[None]:
        """Undo all changes at the end of the block."""

    def plan(self) -> Steps:
        """Return the statement's plan."""

    def plan_with(self, indexes: Sequence[TriedIndex]) -> tuple[Steps, Mapping[int, str]]:
        """Return the plan with these indexes, and the compared terms of each used index by its
        number.
        """


def columns_needing_other_types(
    trial: UndoableTrial, before: Steps, columns: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find columns of scanned tables on which an index would help if the column were different.
    Return the columns that need another type, and the columns that need no collation.
    """
    types: list[str] = []
    collations: list[str] = []
    for table, names in columns.items() if _scanned(before) else ():
        listed = trial.judge.rows(EMPTY, COLUMNS_SQL, (table,))
        own = {name: kind for name, kind, _ in listed}
        for name in names:
            if _helps_with_type(trial, before, table, listed, name, own[name]):
                collations.append(f"{table}.{name}")
            elif _is_usable(trial, table, name):
                continue  # the index works with the column's own type
            elif any(
                _helps_with_type(trial, before, table, listed, name, kind) for kind in OTHER_TYPES
            ):
                types.append(f"{table}.{name}")
    return tuple(types), tuple(collations)


def columns_still_scanned(
    trial: UndoableTrial,
    before: Steps,
    after: Steps,
    columns: Mapping[str, tuple[str, ...]],
    indexes: Iterable[TriedIndex],
) -> tuple[str, ...]:
    """Return columns whose type prevents an index, if the plan with these indexes still scans the
    same table. Tables that have one of these indexes are skipped.
    """
    if _scanned(before).isdisjoint(_scanned(after)):
        return ()
    indexed = {one.table for one in indexes}
    others = {table: names for table, names in columns.items() if table not in indexed}
    return columns_needing_other_types(trial, before, others)[0]


def _scanned(plan: Steps) -> frozenset[str]:
    """Return the tables that a plan reads completely, directly or along an index."""
    signs = plan_signs(plan)
    return frozenset((*signs.scans, *signs.index_scans))


def _is_usable(trial: UndoableTrial, table: str, name: str) -> bool:
    """Return whether SQLite searches an index on the unchanged column. Automatic indexes are
    disabled for this check.
    """
    index = TriedIndex(table, (TriedTerm(name),))
    trial.judge.switch(EMPTY, "automatic_index", False)
    try:
        used = trial.plan_with([index])[1]
        return any(map(index.compared_term_count, used.values()))
    finally:
        trial.judge.switch(EMPTY, "automatic_index", True)


def _helps_with_type(
    trial: UndoableTrial,
    before: Steps,
    table: str,
    listed: Sequence[tuple[str, str, int]],
    name: str,
    kind: str,
) -> bool:
    """Return whether an index on a column would be used if the column had this type (`kind`) and no
    collation.
    """
    typed = ", ".join(
        f"{quoted(column)} {kind if column == name else own}"
        + (" PRIMARY KEY" if key and own.upper() == "INTEGER" else "")
        for column, own, key in listed
    )
    with trial.undone(), suppress(StatementError):
        trial.judge.execute(EMPTY, f"DROP TABLE {quoted(table)}")
        trial.judge.execute(EMPTY, f"CREATE TABLE {quoted(table)} ({typed})")
        plan = trial.plan()
        if _scanned(plan) != _scanned(before) and not any("AUTOMATIC" in step for step in plan):
            return False  # the new table changed the plan by itself
        after, used = trial.plan_with([TriedIndex(table, (TriedTerm(name),))])
        return bool(used) and comparison_count(after) > comparison_count(before)
    return False
