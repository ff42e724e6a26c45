"""Find foreign keys without an index, whose checks make a statement scan the referring table.

A plan does not list the checks of rows that ON DELETE CASCADE deletes. SQLite's bytecode of the
statement (EXPLAIN) has these checks (https://www.sqlite.org/foreignkeys.html#fk_indexes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from queryprof.planner.catalogue import REFERRING_COLUMNS_SQL
from queryprof.planner.crossed_tables import Operation
from queryprof.planner.judging import EMPTY, Judge, StatementError
from queryprof.planner.tried_index import TriedIndex, TriedTerm
from queryprof.sql.names import quoted

MAX_TABLES = 16

TABLE_OF_PAGE = "SELECT tbl_name FROM sqlite_schema WHERE rootpage = ? AND type = 'table'"


class ProgramTrial(Protocol):
    """Tries changes to the empty copy with one statement (see index_trial.StatementTrial)."""

    judge: Judge

    def undone(self) -> AbstractContextManager[None]:
        """Undo all changes at the end of the block."""

    def program(self) -> Sequence[Operation]:
        """Return the bytecode instructions of the statement."""


def find_unindexed_references(trial: ProgramTrial) -> list[TriedIndex]:
    """Return the indexes on foreign key columns that make a statement scan fewer tables. The copy
    must enforce foreign keys.
    """
    return [
        index
        for table in dict.fromkeys(_scanned_tables(trial))
        for (column,) in trial.judge.rows(EMPTY, REFERRING_COLUMNS_SQL, (table,))
        if _scans_less(trial, index := TriedIndex(table, (TriedTerm(column),)))
    ]


def has_scans(trial: ProgramTrial) -> bool:
    """Return whether a statement, or a trigger that it fires, scans a table."""
    return bool(_scans_by_page(trial.program()))


def _scanned_tables(trial: ProgramTrial) -> Iterator[str]:
    """Yield the tables that a statement scans, including scans in triggers and foreign key
    checks.
    """
    for page in list(_scans_by_page(trial.program()))[:MAX_TABLES]:
        for (name,) in trial.judge.rows(EMPTY, TABLE_OF_PAGE, (page,)):
            yield str(name)


def _scans_by_page(program: Iterable[Operation]) -> Counter[int]:
    """Count the scans of each table by its root page. Each subprogram begins at address 0 and has
    its own cursor numbers.
    """
    found: Counter[int] = Counter()
    pages: dict[int, int] = {}
    for at, code, cursor, page, *_ in program:
        if at == 0:
            pages = {}
        if code in ("OpenRead", "OpenWrite"):
            pages[cursor] = page
        elif code == "Rewind" and cursor in pages:
            found[pages[cursor]] += 1
    return found


def _scans_less(trial: ProgramTrial, index: TriedIndex) -> bool:
    """Return whether a statement scans less with an index."""
    before = _scans_by_page(trial.program()).total()
    with trial.undone(), suppress(StatementError):
        trial.judge.execute(EMPTY, index.sql("queryprof_reference", quoted))
        return _scans_by_page(trial.program()).total() < before
    return False
