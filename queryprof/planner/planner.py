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
from queryprof.planner.crossed_tables import crossed_root_pages
from queryprof.planner.dummies import run_with_dummies
from queryprof.planner.facts import IndexHelp
from queryprof.planner.index_trial import StatementTrial
from queryprof.planner.judging import EMPTY, Judge, OutOfTime, StatementError, start_judge
from queryprof.planner.partial_indexes import (
    find_missed_partial_index,
    is_index_used,
    read_partial_indexes,
    with_partial_index_values,
)
from queryprof.planner.references import find_unindexed_references, has_scans
from queryprof.planner.row_steps import find_only_scan, steps_of_scan
from queryprof.planner.statistics import set_statistics
from queryprof.planner.values import placeholders, replace_placeholders
from queryprof.sql.clauses import comparisons_of
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import parameters_in, tokens_of
from queryprof.sql.triggers import Trigger, fired_triggers, remaining_triggers

MAX_STATEMENTS = 100
BUDGET_S = 2.0
"""The time for all statements of a trace. Each statement takes a few milliseconds."""

MAX_SCRIPT = 50_000
"""Only this many characters of a script are split into statements."""

MAX_SCRIPTS = 1_000_000
"""The maximum number of characters in all scripts together."""

MAX_SEMICOLONS = 100
"""The maximum number of semicolons in one statement, such as a trigger."""

COLUMNS_OF_PAGE = (
    "SELECT c.name, c.type, c.pk FROM sqlite_schema AS s, pragma_table_list(s.name) AS t,"
    " pragma_table_xinfo(s.name) AS c WHERE s.rootpage = ? AND s.type = 'table' AND t.schema ="
    " 'main' AND NOT t.wr AND c.hidden <> 2 ORDER BY c.cid"
)
"""Returns a table's columns in their stored order. Virtual generated columns (hidden = 2) are not
stored. WITHOUT ROWID tables are excluded, because they store columns in another order.
"""

TABLE_OF_PAGE = "SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?"

FOLDING = frozenset({"AggStep", "AggStep1"})
"""Opcodes that add a row to an aggregate, such as a sum."""

MISSING_TABLE = re.compile(r"no such table: (?:main\.)?(\w+)")
"""SQLite's error about a missing table of a statement, or of a trigger that the statement fires."""

CHANGES_SCHEMA = ("CREATE", "ALTER", "DROP")


class SchemaPlanner:
    """The planner of this Python's SQLite. It runs in the judge, a separate process that starts at
    first use.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        databases: Mapping[str, str],
        texts: Iterable[str],
        versions: Collection[str] = (),
    ) -> None:
        """Prepare a planner.

        Args:
            schemas: the schema of each database file. databases: the database file of each
                statement.
            texts: the program's statements in order. If a database file is missing, the statements
                that created its tables define the schema.
            versions: the program's SQLite versions. Other versions may need other VM steps.
        """
        self._versions = frozenset(versions)
        self._schemas, self._databases, self._texts = schemas, databases, tuple(texts)
        self._judge: Judge | None = None
        self._ready: tuple[str, bool] | None = None
        self._known: dict[str, IndexHelp | None] = {}
        self._triggers: dict[str, tuple[Trigger, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._judge:
            self._judge.close()

    def index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp | None:
        """Return the indexes that the planner would use; None if the schema is unknown."""
        if statement not in self._known:
            found = None
            if len(self._known) < MAX_STATEMENTS:
                with suppress(StatementError, OutOfTime, ProofError):
                    found = self._with_row_steps(statement, self._find_index_help(statement, plans))
            judge = self._judge
            if found and judge and judge.version not in self._versions:
                found = replace(found, other_version=judge.version)
            elif found and judge:
                called = functions_in(tokens_of(statement))
                own = dict.fromkeys(one for one in called if one in judge.dummy_functions)
                found = replace(found, functions=tuple(own))
            self._known[statement] = found
        return self._known[statement]

    def _with_row_steps(self, statement: str, index_help: IndexHelp | None) -> IndexHelp | None:
        if index_help is None or index_help.is_other or self._judge is None:
            return index_help
        program = [one[:4] for one in StatementTrial(self._judge, statement).program()]
        index_help = replace(
            index_help, is_aggregate=any(code in FOLDING for _, code, _, _ in program)
        )
        is_list = any(one.operator == "IN" for one in comparisons_of(statement))  # of any length
        if is_list or self._versions != {self._judge.version}:
            return index_help
        scan = find_only_scan(program)
        if scan is None:
            return index_help
        columns = self._judge.rows(EMPTY, COLUMNS_OF_PAGE, (scan.page,))
        if not columns:
            return index_help
        names = [str(name) for name, _, _ in columns]
        stored = {name.lower() for name in names}
        if index_help.is_plain and all(
            one.strip('"').lower() not in stored for one in index_help.terms
        ):
            return index_help  # a generated column needs the VM steps of its expression
        keys = [name for name, kind, key in columns if key and str(kind).upper() == "INTEGER"]
        key = keys[0] if sum(bool(key) for *_, key in columns) == len(keys) == 1 else ""
        return replace(index_help, row_steps=steps_of_scan(program, scan, names, key))

    def knows_names(self, statement: str) -> bool:
        """Return whether a statement's database has the tables and columns that the statement
        names; True if there is no time to check.
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

    def crossed_tables(self, statement: str, plans: Sequence[Steps]) -> tuple[str, ...]:
        """Return two tables whose rows a join multiplies: each row of one is combined with each row
        of the other. If both are joined to another table, that table is third. The result is empty
        if there are no such tables, or without a schema.
        """
        with suppress(StatementError, OutOfTime, ProofError):
            judge = self._start_judge(self._databases.get(statement, ""))
            trial = StatementTrial(judge, statement)
            if trial.plan() in plans:
                pages = crossed_root_pages(trial.program())
                named = [judge.rows(EMPTY, TABLE_OF_PAGE, (page,)) for page in pages]
                return tuple(str(name) for rows in named for (name,) in rows)
        return ()

    def unindexed_references(
        self, statement: str, plans: Sequence[Steps]
    ) -> tuple[tuple[str, ...], str]:
        """Return the foreign keys that make a statement scan a table, and the SQL of indexes on
        them. Both are empty if there are no such keys, or without a schema.
        """
        with suppress(StatementError, OutOfTime, ProofError):
            judge = self._start_judge(self._databases.get(statement, ""))
            trial = StatementTrial(judge, statement)
            if trial.plan() in plans or has_scans(trial):
                return (), ""  # the scan comes from no foreign key
            judge.switch(EMPTY, "foreign_keys", True)
            try:
                found = find_unindexed_references(trial) if trial.plan() in plans else []
            finally:
                judge.switch(EMPTY, "foreign_keys", False)
            names = tuple(f"{one.table}.{one.terms[0].column}" for one in found)
            return names, trial.create_sql(found)
        return (), ""

    def triggers(self, statement: str) -> Sequence[Trigger]:
        """Return the triggers that a statement fires; empty if its schema is unknown."""
        database = self._databases.get(statement, "")
        if database not in self._triggers:
            schema = self._schemas.get(database)
            self._triggers[database] = remaining_triggers(
                schema.created if schema else schema_statements(self._texts)
            )
        return tuple(fired_triggers(statement, self._triggers[database]))

    def statistics_mislead(self, statement: str, plans: Sequence[Steps]) -> bool:
        """Return whether the planner chooses another plan without the statistics."""
        database = self._databases.get(statement, "")
        with suppress(StatementError, OutOfTime, ProofError):
            found = StatementTrial(
                self._start_judge(database, with_statistics=False), statement
            ).plan()
            return bool(plans) and found not in plans
        return False

    def _find_index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp | None:
        judge = self._start_judge(self._databases.get(statement, ""))
        trial = StatementTrial(judge, statement)
        before = trial.plan()
        if before in plans or not plans:
            index_help = trial.index_help(before)
            if unused := find_missed_partial_index(judge, trial, statement, before):
                return replace(index_help, partial=unused)
            with_prefixes = with_prefix_patterns(statement)
            if index_help.code or with_prefixes == statement:
                return index_help
            return replace(
                StatementTrial(judge, with_prefixes).index_help(before), plan=before, by_prefix=True
            )
        partial = [
            index for index in read_partial_indexes(judge) if is_index_used(index.name, plans)
        ]
        if partial:  # the recorded text lacks the values that a partial index needs
            trial = StatementTrial(judge, with_partial_index_values(partial, statement))
            before = trial.plan()
            return trial.index_help(before) if before in plans else None
        return _help_for_other_limits(judge, statement, plans) or IndexHelp(before, is_other=True)

    def _start_judge(self, database: str, *, with_statistics: bool = True) -> Judge:
        """Return the judge with the schema of a database."""
        judge = self._judge
        if judge is None:
            judge = self._judge = start_judge(sorted(self._versions))
            judge.set_deadline(BUDGET_S)
        if self._ready != (database, with_statistics):
            judge.create_empty(EMPTY)
            schema = self._schemas.get(database)
            for sql in schema.created if schema else schema_statements(self._texts):
                with suppress(StatementError):
                    run_with_dummies(judge, EMPTY, partial(judge.create, EMPTY, sql))
            if schema and schema.statistics and with_statistics:
                set_statistics(judge, EMPTY, schema.statistics)
            self._ready = (database, with_statistics)
        return judge


def _help_for_other_limits(
    judge: Judge, statement: str, plans: Sequence[Steps]
) -> IndexHelp | None:
    """Return the index help if a number in LIMIT, or a foreign key check, explains why the program
    has another plan; else None.
    """
    trial, with_limits = StatementTrial(judge, statement), with_limit_numbers(statement)
    if with_limits != statement:
        limited = StatementTrial(judge, with_limits)
        if (plan := limited.plan()) in plans:
            return limited.index_help(plan)
    judge.switch(EMPTY, "foreign_keys", True)
    try:
        plan = trial.plan()
        return replace(trial.index_help(plan), by_reference=True) if plan in plans else None
    finally:
        judge.switch(EMPTY, "foreign_keys", False)


PREFIX_PATTERNS = {"LIKE": "'a%'", "GLOB": "'a*'"}


def with_prefix_patterns(statement: str) -> str:
    """Replace the parameters of LIKE and GLOB by patterns that begin with a letter. SQLite can
    search an index by such patterns
    (https://www.sqlite.org/optoverview.html#the_like_optimization).
    """
    patterns = {
        one.right[0].start: PREFIX_PATTERNS[one.operator]
        for one in comparisons_of(statement)
        if len(one.right) == 1 and one.operator in PREFIX_PATTERNS
    }
    spans = parameters_in(statement)
    return replace_placeholders(
        statement, [patterns.get(start, statement[start:end]) for start, end in spans]
    )


LIMITS = {"LIMIT": "20", "OFFSET": "0"}


def with_limit_numbers(statement: str) -> str:
    """Replace the parameters of LIMIT and OFFSET by numbers. The recorded text has no literals, but
    the plan depends on the number (https://www.sqlite.org/queryplanner-ng.html).
    """
    numbers = {
        second.start: LIMITS[first.keyword]
        for first, second in pairwise(tokens_of(statement))
        if first.keyword in LIMITS
    }
    spans = parameters_in(statement)
    return replace_placeholders(
        statement, [numbers.get(start, statement[start:end]) for start, end in spans]
    )


def schema_statements(texts: Iterable[str]) -> Iterator[str]:
    """Yield the statements that change a schema, including statements in scripts. Literals, which
    recorded texts lack, become 0.
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
                yield replace_placeholders(sql, ["0"] * len(placeholders(sql)))


def _split_script(script: str) -> Iterator[str]:
    """Yield a script's statements. sqlite3.complete_statement() decides where a statement ends."""
    start = tries = 0
    for found in re.finditer(";|$", script):
        sql = script[start : found.end()]
        tries += 1
        if tries > MAX_SEMICOLONS:
            return
        if sql.strip() and (found[0] == "" or _is_complete_statement(sql)):
            yield sql
            start, tries = found.end(), 0


def _is_complete_statement(sql: str) -> bool:
    try:
        return sqlite3.complete_statement(sql)
    except ValueError:  # contains a NUL or a lone surrogate
        return False
