"""SQLite's planner on an empty copy of a program's schema."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Self

from queryprof.analysis.plans import Steps
from queryprof.errors import ProofError
from queryprof.model import Schema
from queryprof.planner.dummies import with_dummies
from queryprof.planner.facts import Served
from queryprof.planner.judging import EMPTY, Judge, OutOfTime, StatementError, judge_for
from queryprof.planner.partial_indexes import (
    is_used,
    missed_partial_index,
    partial_indexes,
    with_values_of,
)
from queryprof.planner.row_steps import row_steps, scan_of
from queryprof.planner.statistics import set_statistics
from queryprof.planner.trial import StatementTrial
from queryprof.planner.values import placeholders, replaced
from queryprof.sql.clauses import comparisons_of, functions_in
from queryprof.sql.tokens import parameters_in, tokens_of
from queryprof.sql.triggers import Trigger, triggers_in, triggers_of

MAX_STATEMENTS = 100
BUDGET_S = 2.0
"""The time for all statements of a trace. Each statement takes a few milliseconds."""

MAX_SCRIPT = 50_000
"""Characters of a text that is split into statements."""

MAX_SCRIPTS = 1_000_000
"""Characters of all such texts."""

MAX_SEMICOLONS = 100
"""The most semicolons in one statement, such as a trigger."""

COLUMNS_OF_PAGE = (
    "SELECT c.name, c.type, c.pk FROM sqlite_schema AS s, pragma_table_list(s.name) AS t,"
    " pragma_table_xinfo(s.name) AS c WHERE s.rootpage = ? AND s.type = 'table' AND t.schema ="
    " 'main' AND NOT t.wr AND c.hidden <> 2 ORDER BY c.cid"
)
"""Columns in their stored order. Generated columns (hidden = 2) are not stored, and a table without
rowids has another order.
"""

FOLDING = frozenset({"AggStep", "AggStep1"})
"""Opcodes that add a row to a sum or another aggregate."""

MISSING_TABLE = re.compile(r"no such table: (?:main\.)?(\w+)")
"""SQLite's message about a statement, or about a trigger that it fires."""

CHANGES_SCHEMA = ("CREATE", "ALTER", "DROP")


class SchemaPlanner:
    """The planner of this Python's SQLite, in a process of its own that starts at first use."""

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        databases: Mapping[str, str],
        texts: Iterable[str],
        versions: Collection[str] = (),
    ) -> None:
        """Prepare a planner.

        Args:
            schemas: by database file. databases: the file of each statement.
            texts: the program's statements in order. If a database file is missing, the statements
                that created its tables define the schema.
            versions: the program's SQLite versions. Another version may take other steps.
        """
        self._versions = frozenset(versions)
        self._schemas, self._databases, self._texts = schemas, databases, tuple(texts)
        self._judge: Judge | None = None
        self._ready: tuple[str, bool] | None = None
        self._known: dict[str, Served | None] = {}
        self._triggers: dict[str, tuple[Trigger, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._judge:
            self._judge.close()

    def served(self, statement: str, plans: Sequence[Steps]) -> Served | None:
        """Return the indexes that the planner would use; None if the schema is unknown."""
        if statement not in self._known:
            found = None
            if len(self._known) < MAX_STATEMENTS:
                with suppress(StatementError, OutOfTime, ProofError):
                    found = self._with_row_steps(statement, self._served(statement, plans))
            judge = self._judge
            if found and judge and judge.version not in self._versions:
                found = replace(found, other_version=judge.version)
            elif found and judge:
                called = functions_in(tokens_of(statement))
                own = dict.fromkeys(one for one in called if one in judge.dummy_functions)
                found = replace(found, functions=tuple(own))
            self._known[statement] = found
        return self._known[statement]

    def _with_row_steps(self, statement: str, served: Served | None) -> Served | None:
        if served is None or served.is_other or self._judge is None:
            return served
        program = StatementTrial(self._judge, statement).program()
        served = replace(served, is_aggregate=any(code in FOLDING for _, code, _, _ in program))
        is_list = any(one.operator == "IN" for one in comparisons_of(statement))  # of any length
        if is_list or self._versions != {self._judge.version}:
            return served
        scan = scan_of(program)
        if scan is None:
            return served
        columns = self._judge.rows(EMPTY, COLUMNS_OF_PAGE, (scan.page,))
        if not columns:
            return served
        names = [str(name) for name, _, _ in columns]
        stored = {name.lower() for name in names}
        if served.is_plain and all(one.strip('"').lower() not in stored for one in served.terms):
            return served  # a generated column has the steps of its expression
        keys = [name for name, kind, key in columns if key and str(kind).upper() == "INTEGER"]
        key = keys[0] if sum(bool(key) for *_, key in columns) == len(keys) == 1 else ""
        return replace(served, row_steps=row_steps(program, scan, names, key))

    def knows(self, statement: str) -> bool:
        """Return whether a statement's database has the names in the statement; True if there is no
        time to check.
        """
        try:
            StatementTrial(self._start_judge(self._databases.get(statement, "")), statement).plan()
        except StatementError as error:
            # A trigger may write to a virtual table, which the copy does not have.
            missing = MISSING_TABLE.search(str(error))
            return missing is not None and missing[1].lower() not in statement.lower()
        except (OutOfTime, ProofError):
            return True
        return True

    def tables(self, statement: str) -> frozenset[str]:
        """Return the tables that a statement reads; empty if its schema is unknown."""
        with suppress(StatementError, OutOfTime, ProofError):
            return StatementTrial(
                self._start_judge(self._databases.get(statement, "")), statement
            ).tables()
        return frozenset()

    def triggers(self, statement: str) -> Sequence[Trigger]:
        """Return the triggers that a statement fires; empty if its schema is unknown."""
        database = self._databases.get(statement, "")
        if database not in self._triggers:
            schema = self._schemas.get(database)
            self._triggers[database] = triggers_in(
                schema.created if schema else created_by(self._texts)
            )
        return tuple(triggers_of(statement, self._triggers[database]))

    def is_misled(self, statement: str, plans: Sequence[Steps]) -> bool:
        """Return whether the planner chooses another plan without the statistics."""
        database = self._databases.get(statement, "")
        with suppress(StatementError, OutOfTime, ProofError):
            found = StatementTrial(
                self._start_judge(database, with_statistics=False), statement
            ).plan()
            return bool(plans) and found not in plans
        return False

    def _served(self, statement: str, plans: Sequence[Steps]) -> Served | None:
        judge = self._start_judge(self._databases.get(statement, ""))
        trial = StatementTrial(judge, statement)
        before = trial.plan()
        if before in plans or not plans:
            served = trial.served(before)
            if unused := missed_partial_index(judge, trial, statement, before):
                return replace(served, partial=unused)
            with_prefixes = with_prefixes_of(statement)
            if served.code or with_prefixes == statement:
                return served
            return replace(
                StatementTrial(judge, with_prefixes).served(before), plan=before, by_prefix=True
            )
        partial = [index for index in partial_indexes(judge) if is_used(index.name, plans)]
        if partial:  # the recorded text lacks the values that a partial index needs
            trial = StatementTrial(judge, with_values_of(partial, statement))
            before = trial.plan()
            return trial.served(before) if before in plans else None
        return _served_otherwise(judge, statement, plans) or Served(before, is_other=True)

    def _start_judge(self, database: str, *, with_statistics: bool = True) -> Judge:
        """Return the judge with the schema of a database."""
        judge = self._judge
        if judge is None:
            judge = self._judge = judge_for(sorted(self._versions))
            judge.deadline(BUDGET_S)
        if self._ready != (database, with_statistics):
            judge.blank(EMPTY)
            schema = self._schemas.get(database)
            for sql in schema.created if schema else created_by(self._texts):
                with suppress(StatementError):
                    with_dummies(judge, EMPTY, partial(judge.create, EMPTY, sql))
            if schema and schema.statistics and with_statistics:
                set_statistics(judge, EMPTY, schema.statistics)
            self._ready = (database, with_statistics)
        return judge


def _served_otherwise(judge: Judge, statement: str, plans: Sequence[Steps]) -> Served | None:
    """Return the helpful indexes if a number in LIMIT, or a foreign key, explains the program's
    plan; None otherwise.
    """
    trial, with_limits = StatementTrial(judge, statement), with_limits_of(statement)
    if with_limits != statement:
        limited = StatementTrial(judge, with_limits)
        if (plan := limited.plan()) in plans:
            return limited.served(plan)
    judge.enforce_references(EMPTY, True)
    try:
        plan = trial.plan()
        return replace(trial.served(plan), by_reference=True) if plan in plans else None
    finally:
        judge.enforce_references(EMPTY, False)


PREFIX_PATTERNS = {"LIKE": "'a%'", "GLOB": "'a*'"}


def with_prefixes_of(statement: str) -> str:
    """Return a statement with patterns that begin with a letter instead of parameters. SQLite can
    search an index by these (https://www.sqlite.org/optoverview.html#the_like_optimization).
    """
    patterns = {
        one.right[0].start: PREFIX_PATTERNS[one.operator]
        for one in comparisons_of(statement)
        if len(one.right) == 1 and one.operator in PREFIX_PATTERNS
    }
    spans = parameters_in(statement)
    return replaced(statement, [patterns.get(start, statement[start:end]) for start, end in spans])


LIMITS = {"LIMIT": "20", "OFFSET": "0"}


def with_limits_of(statement: str) -> str:
    """Return a statement with numbers instead of parameters in LIMIT and OFFSET. The recorded text
    has no literals, but SQLite plans for the number (https://www.sqlite.org/queryplanner-ng.html).
    """
    numbers = {
        second.start: LIMITS[first.keyword]
        for first, second in pairwise(tokens_of(statement))
        if first.keyword in LIMITS
    }
    spans = parameters_in(statement)
    return replaced(statement, [numbers.get(start, statement[start:end]) for start, end in spans])


def created_by(texts: Iterable[str]) -> Iterator[str]:
    """Yield the statements, also within scripts, that change a schema, with values for the literals
    that recorded texts lack.
    """
    left = MAX_SCRIPTS
    for text in texts:
        if left < 0:
            return
        if not text.lstrip()[:6].upper().startswith(CHANGES_SCHEMA) and ";" not in text:
            continue
        left -= len(text)
        for sql in _split_script(text[:MAX_SCRIPT]):
            if sql.lstrip()[:6].upper().startswith(CHANGES_SCHEMA):
                yield replaced(sql, ["0"] * len(placeholders(sql)))


def _split_script(script: str) -> Iterator[str]:
    """Yield a script's statements. SQLite decides where they end."""
    start = tries = 0
    for found in re.finditer(";|$", script):
        sql = script[start : found.end()]
        tries += 1
        if tries > MAX_SEMICOLONS:
            return
        if sql.strip() and (found[0] == "" or _is_complete(sql)):
            yield sql
            start, tries = found.end(), 0


def _is_complete(sql: str) -> bool:
    try:
        return sqlite3.complete_statement(sql)
    except ValueError:  # a NUL, or half a character, is in no statement
        return False
