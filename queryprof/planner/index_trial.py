"""Find the index that helps a statement, with SQLite's planner on an empty copy of the schema.

The search creates indexes on the columns that the statement reads: first of one column, then of two
and three. It keeps the indexes that the planner uses, without their unused columns. SQLite's
authorizer reports which columns a statement reads
(https://www.sqlite.org/c3ref/set_authorizer.html), and the plan shows the used columns of an index
(https://www.sqlite.org/eqp.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import permutations
from typing import Any

from queryprof.analysis.plans import Steps, normalize_plan, plan_signs
from queryprof.planner.better_plans import (
    comparison_count,
    is_better_plan,
    scan_count,
    searches_more,
    sorting_in,
)
from queryprof.planner.catalogue import (
    COLUMNS_SQL,
    INDEXES,
    KEYS,
    NAMES_SQL,
    REFERRING_COLUMNS_SQL,
    TABLE_OF,
)
from queryprof.planner.crossed_tables import Operation
from queryprof.planner.dummies import run_with_dummies
from queryprof.planner.expressions import column_expressions
from queryprof.planner.facts import IndexHelp
from queryprof.planner.judging import EMPTY, Judge, StatementError
from queryprof.planner.other_types import columns_needing_other_types, columns_still_scanned
from queryprof.planner.tried_index import (
    ANYCASE,
    ColumnsByTable,
    TriedIndex,
    TriedTerm,
    as_used,
    ignoring_case,
    is_prefix_of,
    plain_indexes,
    wider_indexes,
)
from queryprof.planner.tried_plans import TRIED_INDEX_PREFIX, USED, is_as_good, is_by_range
from queryprof.planner.values import name_all_placeholders, null_values
from queryprof.sql.names import quoted
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import tokens_of

MAX_TERMS = 3
MAX_STEPS = 500  # of a plan
MAX_COVERING = 5
"""The maximum number of columns in a covering index. A wider index is like a copy of the table."""

MAX_COLUMNS = 16
"""The maximum number of columns of a table to try."""

LOOKED_UP = re.compile(r"(?:SCAN|SEARCH) \S+ USING INDEX (\S+)")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class StatementTrial:
    """Tries indexes for one statement on the empty copy. Changes to the copy are undone."""

    def __init__(self, judge: Judge, statement: str) -> None:
        self.judge, self._statement = judge, name_all_placeholders(statement)
        self._values = null_values(self._statement)

    def _explain_rows(self, how: str) -> Sequence[tuple[Any, ...]]:
        judge, sql = self.judge, f"{how} {self._statement}"
        return run_with_dummies(judge, EMPTY, lambda: judge.rows(EMPTY, sql, self._values))

    def program(self) -> Sequence[Operation]:
        """Return the statement's bytecode instructions. Raises StatementError."""
        return [
            (at, code, p1, p2, p3, p4)
            for at, code, p1, p2, p3, p4, *_ in self._explain_rows("EXPLAIN")
        ]

    def plan(self) -> Steps:
        """Return the statement's plan. Raises StatementError."""
        rows = self._explain_rows("EXPLAIN QUERY PLAN")
        if len(rows) > MAX_STEPS:  # nested views can have any number of steps
            raise StatementError(f"its plan has more than {MAX_STEPS} steps")
        depths, lines = {0: -1}, []
        for number, parent, _, detail in rows:
            depths[number] = depths.get(parent, -1) + 1
            lines.append("  " * depths[number] + " ".join(detail.splitlines()))
        return normalize_plan("\n".join(lines))

    def index_help(self, before: Steps) -> IndexHelp:
        """Return indexes that improve the plan, or columns whose types prevent an index."""
        columns = self._read_columns(before)
        found, after = self._extend_indexes(before, columns)
        index_help = self._describe(before, found, after, columns)
        if found and not searches_more(before, after):
            others = self._filter_index(before, columns)
            return replace(index_help, filtering=self._describe(before, *others, columns))
        return index_help

    def _filter_index(
        self, before: Steps, columns: ColumnsByTable
    ) -> tuple[list[TriedIndex], Steps]:
        """Return an index for the statement's conditions, ignoring its sort order, and the plan
        with this index. An index for an equality is preferred.
        """
        found: tuple[list[TriedIndex], Steps] = [], before
        for index in (*plain_indexes(columns), *self._expression_indexes(columns)):
            others, after = self._better_indexes([], before, [index])
            if others and searches_more(before, after) and not (found[0] and is_by_range(after)):
                found = others, after
                if not is_by_range(after):
                    break
        return found

    def _describe(
        self, before: Steps, found: list[TriedIndex], after: Steps, columns: ColumnsByTable
    ) -> IndexHelp:
        """Describe how the indexes change the plan or, without indexes, why no index helps."""
        found = [one for one in found if not any(is_prefix_of(one, other) for other in found)]
        if found:
            covering = self._all_covering(found, after, columns)
            return IndexHelp(
                before,
                self.create_sql(found),
                tuple(term.column for index in found for term in index.terms),
                is_plain=not any(term.is_expression for index in found for term in index.terms),
                covers=covering == found,
                widened=self._widened_sql(before, columns),
                covering=self.create_sql(covering) if covering and covering != found else "",
                still_scans=scan_count(after) > 1,  # one scan may be the outermost loop
                searches=searches_more(before, after),
                finds_end=comparison_count(after) <= comparison_count(before)
                and scan_count(after) < scan_count(before),
                sorts_less=sorting_in(after) < sorting_in(before),
                by_range=is_by_range(after),
                differing=columns_still_scanned(self, before, after, columns, found),
            )
        types, collations = columns_needing_other_types(self, before, columns)
        wide = self._widened_sql(before, columns)
        return IndexHelp(before, differing=types, recollated=collations, widened=wide)

    def _widened_sql(self, before: Steps, columns: ColumnsByTable) -> str:
        """Return SQL for the index of the plan's innermost loop, widened by the columns that SQLite
        looks up in the table; "" if impossible.
        """
        used = [found[1] for step in before if (found := LOOKED_UP.search(step))][-1:]
        tables = [str(one) for name in used for (one,) in self.judge.rows(EMPTY, TABLE_OF, (name,))]
        keys = self.judge.rows(EMPTY, KEYS, tuple(tables)) if tables else ()
        terms = tuple(TriedTerm(key, bool(falls)) for name, key, falls in keys if name in used)
        if not terms or any(term.column is None for term in terms):
            return ""  # the index is on an expression, or partial
        with self.undone():
            self.judge.execute(EMPTY, f"DROP INDEX {quoted(used[0])}")
            wide = self._wider([TriedIndex(tables[0], terms)], columns)
            after, _ = self.plan_with(wide)
        is_covering = any(f"USING COVERING INDEX {TRIED_INDEX_PREFIX}0" in step for step in after)
        return self.create_sql(wide) if is_covering and is_as_good(before, after) else ""

    def create_sql(self, indexes: Sequence[TriedIndex]) -> str:
        """Return the SQL that creates indexes, with names that are unused in the schema."""
        return " ".join(f"{index.sql(self._unused(index.name), self._quote)};" for index in indexes)

    def _all_covering(
        self, indexes: Sequence[TriedIndex], plan: Steps, columns: ColumnsByTable
    ) -> list[TriedIndex]:
        """Widen the indexes to all columns that the statement reads from their tables. Return an
        empty list if an index is too wide, or if the planner does not use every index or still
        reads a table.
        """
        wide = self._wider(indexes, columns)
        after, used = self.plan_with(wide)
        looks_up = any(LOOKED_UP.search(step) for step in after) or plan_signs(after).scans
        is_better = wide and len(used) == len(wide) and is_as_good(plan, after) and not looks_up
        return wide if is_better else []

    def _wider(self, indexes: Sequence[TriedIndex], columns: ColumnsByTable) -> list[TriedIndex]:
        """Add all other columns that the statement reads from each index's table. Return an empty
        list if an index would be too wide.
        """
        wide: list[TriedIndex] = []
        for index in indexes:
            names = columns.get(index.table, ())
            # an index that ignores case still holds the original value
            plain = {one.removesuffix(ANYCASE) for one in index.columns}
            if any(one.is_expression and not one.column.endswith(ANYCASE) for one in index.terms):
                return []
            rest = (TriedTerm(name) for name in names if not {name, self._quote(name)} & plain)
            wide.append(TriedIndex(index.table, (*index.terms, *rest)))
            if len(wide[-1].terms) > MAX_COVERING:
                return []
        return wide

    def _unused(self, name: str) -> str:
        """Return a name that is unused in the schema."""
        taken = {str(one).lower() for (one,) in self.judge.rows(EMPTY, NAMES_SQL)}
        names = (name, *(f"{name}_{number}" for number in range(2, 100)))
        return next((one for one in names if one.lower() not in taken), name)

    def tables(self) -> frozenset[str]:
        """Return the tables that the statement reads. Raises StatementError."""
        self.plan()  # creates dummies for unknown functions
        return frozenset(
            table for table, _ in self.judge.columns(EMPTY, self._statement, self._values)
        )

    def _read_columns(self, before: Steps) -> ColumnsByTable:
        """Return the columns that the statement reads, by table. For a table that only a foreign
        key check scans, return the foreign key's columns.
        """
        read = [tuple(one) for one in self.judge.columns(EMPTY, self._statement, self._values)]
        found: dict[str, tuple[str, ...]] = {}
        for table in dict.fromkeys(table for table, _ in read):
            listed = self.judge.rows(EMPTY, COLUMNS_SQL, (table,))
            keys = [name for name, kind, key in listed if key and kind.upper() == "INTEGER"]
            rowid = keys if sum(bool(row[2]) for row in listed) == 1 else []
            names = [name for name, *_ in listed if (table, name) in read and name not in rowid]
            if names:
                found[table] = tuple(names[:MAX_COLUMNS])
        for table in plan_signs(before).scans:  # a foreign key's check reads no column
            referring = self.judge.rows(EMPTY, REFERRING_COLUMNS_SQL, (table,))
            if table not in found and referring:
                found[table] = tuple(name for (name,) in referring)
        return found

    def _extend_indexes(
        self, before: Steps, columns: ColumnsByTable
    ) -> tuple[list[TriedIndex], Steps]:
        """Add columns to the used indexes, as long as the planner also uses the new columns.

        Returns:
            The indexes that improve the plan, and the improved plan.
        """
        taken: tuple[TriedIndex, ...] = ()
        with self.undone():
            for table in columns:  # existing indexes would hide new ones
                for (name,) in self.judge.rows(EMPTY, INDEXES, (table,)):
                    self.judge.execute(EMPTY, f"DROP INDEX {quoted(name)}")
            for _ in range(MAX_TERMS):
                wider = self._used_with_one_term_more(taken, columns)
                if wider == taken:
                    break
                taken = wider
            taken = self._with_equalities(taken or self._group_index(before, columns), columns)
        found, plan = self._better_indexes([], before, taken)
        found, plan = self._better_indexes(found, plan, ignoring_case(taken, columns, self._quote))
        if not found:  # an OR may need several indexes
            found, plan = self._better_indexes([], before, plain_indexes(columns))
        if not found:
            found, plan = self._better_indexes([], before, self._expression_indexes(columns))
        return found, plan

    def _better_indexes(
        self, known: list[TriedIndex], before: Steps, indexes: Sequence[TriedIndex]
    ) -> tuple[list[TriedIndex], Steps]:
        """Return the indexes that improve a plan, and the better plan; else `known`, `before`."""
        new = [index for index in indexes if not self._exists(index)]
        after, used = self.plan_with(new)
        if used and is_better_plan(before, after):
            return [new[number] for number in used], after
        return known, before

    def _group_index(self, before: Steps, columns: ColumnsByTable) -> tuple[TriedIndex, ...]:
        """Return an index that begins with the columns of GROUP BY or DISTINCT. An index on only
        one of these columns does not keep a group's rows together.
        """
        if len(columns) != 1 or not sorting_in(before):
            return ()
        ((table, names),) = columns.items()
        for width in range(2, MAX_TERMS + 1) if len(names) <= MAX_COVERING else ():
            tried = [
                TriedIndex(table, tuple(map(TriedTerm, terms)))
                for terms in permutations(names, width)
            ]
            after, used = self.plan_with(tried)
            if used and sorting_in(after) < sorting_in(before):
                return tuple(tried[number] for number in used)
        return ()

    def _with_equalities(
        self, taken: tuple[TriedIndex, ...], columns: ColumnsByTable
    ) -> tuple[TriedIndex, ...]:
        """Return the indexes with further equality columns in front. The planner prefers an index
        in sort order to an index with fewer rows, because it does not know the row counts.
        """
        for place in range(len(taken)):
            for name in columns.get(taken[place].table, ()):
                known = taken[place]
                if name in known.columns or len(known.terms) > MAX_TERMS:
                    continue
                first = TriedIndex(known.table, (TriedTerm(name), *known.terms))
                wider = (*taken[:place], first, *taken[place + 1 :])
                (before, _), (after, used) = self.plan_with(taken), self.plan_with(wider)
                is_better = comparison_count(after) > comparison_count(before)
                if place in used and is_better and sorting_in(after) <= sorting_in(before):
                    taken = wider
        return taken

    def _expression_indexes(self, columns: ColumnsByTable) -> list[TriedIndex]:
        """Return indexes on the statement's compared expressions, and on its columns, with case and
        without. Indexes that SQLite rejects are omitted.
        """
        found = plain_indexes(columns)
        for table, names in columns.items():
            anycase = [f"{self._quote(name)}{ANYCASE}" for name in names]
            computed = [
                one for one in column_expressions(self._statement, names) if not self._is_own(one)
            ]
            for expression in (*computed, *anycase):
                index = TriedIndex(table, (TriedTerm(expression, is_expression=True),))
                with self.undone(), suppress(StatementError):
                    self.judge.execute(EMPTY, index.sql(f"{TRIED_INDEX_PREFIX}0", quoted))
                    found.append(index)
        return found

    def _is_own(self, expression: str) -> bool:
        """Return whether an expression calls a function of the program. Only the program itself can
        create an index on such an expression.
        """
        sql = "SELECT count(*) FROM pragma_function_list WHERE name = lower(?) AND builtin"
        return any(
            not self.judge.rows(EMPTY, sql, (name,))[0][0]
            for name in functions_in(tokens_of(expression))
        )

    def _used_with_one_term_more(
        self, taken: tuple[TriedIndex, ...], columns: ColumnsByTable
    ) -> tuple[TriedIndex, ...]:
        """Try all ways of adding one term to the indexes. Return the indexes that the planner uses,
        without unused terms. Terms compared for equality come first, because SQLite does not search
        by the terms after a range.
        """
        before, _ = self.plan_with(taken)
        wider = list(dict.fromkeys(wider_indexes(taken, columns, sorts=bool(sorting_in(before)))))
        found: tuple[TriedIndex, ...] = ()
        while True:
            after, used = self.plan_with(wider)
            is_sorted = sorting_in(after) < sorting_in(before)
            by_range = [
                wider[n] for n, listed in used.items() if wider[n].is_searched_by_range(listed)
            ]
            narrowed = as_used(wider, used, is_sorted, taken)
            if not found or not (by_range or set(narrowed) <= set(taken)):
                found = narrowed
            if not by_range:
                return found or taken
            wider = [index for index in wider if index not in by_range]

    def plan_with(self, indexes: Sequence[TriedIndex]) -> tuple[Steps, Mapping[int, str]]:
        """Return the plan with these indexes. Also return the terms that each used index compares,
        by the number of the index.
        """
        with self.undone():
            for number, index in enumerate(indexes):
                self.judge.execute(EMPTY, index.sql(f"{TRIED_INDEX_PREFIX}{number}", quoted))
            plan = self.plan()
        used: dict[int, str] = {}
        for step in plan:
            found = USED.search(step)
            if not found or int(found[1]) >= len(indexes):  # an index of the database
                continue
            number = int(found[1])
            # max() reads the end of the index, which counts as a search for a value
            is_end = "SEARCH" in step and not found[2]
            listed = f"{indexes[number].columns[0]}=" if is_end else found[2] or ""
            used[number] = used.get(number, "") + listed
        return plan, used

    def _exists(self, index: TriedIndex) -> bool:
        """Return whether an existing index begins with the terms of this index."""
        found: dict[str, list[TriedTerm]] = {}
        for name, column, is_descending in self.judge.rows(EMPTY, KEYS, (index.table,)):
            found.setdefault(name, []).append(TriedTerm(column, bool(is_descending)))
        width = len(index.terms)
        return any(tuple(terms[:width]) == index.terms for terms in found.values())

    def _quote(self, name: str) -> str:
        """Return a name for SQL, quoted if necessary."""
        if SIMPLE.fullmatch(name):
            with suppress(StatementError):
                self.judge.rows(EMPTY, f"EXPLAIN SELECT 1 AS {name}")
                return name
        return quoted(name)

    @contextmanager
    def undone(self) -> Iterator[None]:
        self.judge.execute(EMPTY, "SAVEPOINT queryprof")
        try:
            yield
        finally:
            self.judge.execute(EMPTY, "ROLLBACK TO queryprof")
            self.judge.execute(EMPTY, "RELEASE queryprof")
