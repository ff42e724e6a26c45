"""Which index serves a statement: SQLite's planner chooses, on an empty copy of the schema.

Indexes on the columns that the statement reads are created there, of one column, then of two and
three; those that the planner takes are kept, as far as it uses their columns. No text is searched
for columns: SQLite's authorizer reports which a statement reads
(https://www.sqlite.org/c3ref/set_authorizer.html), and the plan which of an index it uses
(https://www.sqlite.org/eqp.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import permutations
from typing import Any

from queryprof.analysis.findings.planning import Served
from queryprof.analysis.plans import Steps, normal_form, signs_of
from queryprof.proof.better_plans import compared_in, is_better, scans_in, searches_more, sorting_in
from queryprof.proof.catalogue import COLUMNS, INDEXES, KEYS, NAMES, REFERRING, TABLE_OF
from queryprof.proof.dummies import with_dummies
from queryprof.proof.expressions import expressions_of
from queryprof.proof.judging import EMPTY, Judge, StatementError
from queryprof.proof.tried_index import (
    ANYCASE,
    TriedIndex,
    TriedTerm,
    anycase_after,
    as_used,
    begins,
    wider_ones,
)
from queryprof.proof.tried_plans import TRIED, USED, in_quotes, is_as_good, is_by_range
from queryprof.proof.values import all_named, nulls_of
from queryprof.sql.clauses import functions_in
from queryprof.sql.tokens import tokens_of

MOST_TERMS = 3
MOST_STEPS = 500  # of a plan
MOST_COVERING = 5
"""Of an index that has all that is read: a wider one is a second copy of the table."""

MOST_COLUMNS = 16
"""Of a table that are tried."""

OTHER_TYPES = ("TEXT", "INTEGER", "")
LOOKED_UP = re.compile(r"(?:SCAN|SEARCH) \S+ USING INDEX (\S+)")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Trial:
    """One statement on the empty copy."""

    def __init__(self, judge: Judge, statement: str) -> None:
        self._judge, self._statement = judge, all_named(statement)
        self._values = nulls_of(self._statement)

    def _explained(self, how: str) -> Sequence[tuple[Any, ...]]:
        judge, sql = self._judge, f"{how} {self._statement}"
        return with_dummies(judge, EMPTY, lambda: judge.rows(EMPTY, sql, self._values))

    def program(self) -> Sequence[tuple[int, str, int, int]]:
        """The address, opcode, P1 and P2 of its instructions there. Raises StatementError."""
        return [(at, code, p1, p2) for at, code, p1, p2, *_ in self._explained("EXPLAIN")]

    def plan(self) -> Steps:
        """Its plan there. Raises StatementError."""
        rows = self._explained("EXPLAIN QUERY PLAN")
        if len(rows) > MOST_STEPS:  # of views of views there are as many as one likes
            raise StatementError(f"its plan has more than {MOST_STEPS} steps")
        depths, lines = {0: -1}, []
        for number, parent, _, detail in rows:
            depths[number] = depths.get(parent, -1) + 1
            lines.append("  " * depths[number] + " ".join(detail.splitlines()))
        return normal_form("\n".join(lines))

    def served(self, before: Steps) -> Served:
        """The indexes that make the plan a better one, or the columns whose types keep it
        from one.
        """
        columns = self._columns(before)
        found, after = self._search(before, columns)
        found = [one for one in found if not any(begins(one, other) for other in found)]
        if found:
            covering = self._all_covering(found, after, columns)
            return Served(
                before,
                self._created(found),
                tuple(term.column for index in found for term in index.terms),
                is_plain=not any(term.is_expression for index in found for term in index.terms),
                covers=covering == found,
                widened=self._widened(before, columns),
                covering=self._created(covering) if covering and covering != found else "",
                still_scans=scans_in(after) > 1,  # one may be the outermost loop
                searches=searches_more(before, after),
                finds_end=compared_in(after) <= compared_in(before)
                and scans_in(after) < scans_in(before),
                sorts_less=sorting_in(after) < sorting_in(before),
                by_range=is_by_range(after),
            )
        types, collations = self._differing(before, columns)
        wide = self._widened(before, columns)
        return Served(before, differing=types, recollated=collations, widened=wide)

    def _widened(self, before: Steps, columns: Mapping[str, tuple[str, ...]]) -> str:
        """The SQL of the index that a plan's innermost loop reads, with what it looks up in the
        table; "": of none.
        """
        used = [found[1] for step in before if (found := LOOKED_UP.search(step))][-1:]
        tables = [
            str(one) for name in used for (one,) in self._judge.rows(EMPTY, TABLE_OF, (name,))
        ]
        keys = self._judge.rows(EMPTY, KEYS, tuple(tables)) if tables else ()
        terms = tuple(TriedTerm(key, bool(falls)) for name, key, falls in keys if name in used)
        if not terms or any(term.column is None for term in terms):
            return ""  # it is on an expression, or on some rows alone
        with self.undone():
            self._judge.do(EMPTY, f"DROP INDEX {in_quotes(used[0])}")
            wide = self._wider([TriedIndex(tables[0], terms)], columns)
            after, _ = self._plan_with(wide)
        is_covering = any(f"USING COVERING INDEX {TRIED}0" in step for step in after)
        return self._created(wide) if is_covering and is_as_good(before, after) else ""

    def _created(self, indexes: Sequence[TriedIndex]) -> str:
        return " ".join(f"{index.sql(self._free(index.name), self._quoted)};" for index in indexes)

    def _all_covering(
        self, indexes: Sequence[TriedIndex], plan: Steps, columns: Mapping[str, tuple[str, ...]]
    ) -> list[TriedIndex]:
        """The indexes with all that the statement reads of their tables; none: one would be too
        wide, the planner takes another way with them, or reads a table without.
        """
        wide = self._wider(indexes, columns)
        after, used = self._plan_with(wide)
        looks_up = any(LOOKED_UP.search(step) for step in after) or signs_of(after).scans
        is_better = wide and len(used) == len(wide) and is_as_good(plan, after) and not looks_up
        return wide if is_better else []

    def _wider(
        self, indexes: Sequence[TriedIndex], columns: Mapping[str, tuple[str, ...]]
    ) -> list[TriedIndex]:
        """The indexes with the other columns that the statement reads of their tables; none: one
        would be too wide.
        """
        wide: list[TriedIndex] = []
        for index in indexes:
            names = columns.get(index.table, ())
            plain = {one.removesuffix(ANYCASE) for one in index.columns}  # it has the value itself
            if any(one.is_expression and not one.column.endswith(ANYCASE) for one in index.terms):
                return []
            rest = (TriedTerm(name) for name in names if not {name, self._quoted(name)} & plain)
            wide.append(TriedIndex(index.table, (*index.terms, *rest)))
            if len(wide[-1].terms) > MOST_COVERING:
                return []
        return wide

    def _free(self, name: str) -> str:
        """A name that nothing in the schema has."""
        taken = {str(one).lower() for (one,) in self._judge.rows(EMPTY, NAMES)}
        names = (name, *(f"{name}_{number}" for number in range(2, 100)))
        return next((one for one in names if one.lower() not in taken), name)

    def tables(self) -> frozenset[str]:
        """The tables that it reads. Raises StatementError."""
        self.plan()  # with what is unknown here made up
        return frozenset(
            table for table, _ in self._judge.columns(EMPTY, self._statement, self._values)
        )

    def _columns(self, before: Steps) -> Mapping[str, tuple[str, ...]]:
        """The columns that the statement reads, by their table; and those of foreign keys to its
        table.
        """
        read = [tuple(one) for one in self._judge.columns(EMPTY, self._statement, self._values)]
        found: dict[str, tuple[str, ...]] = {}
        for table in dict.fromkeys(table for table, _ in read):
            listed = self._judge.rows(EMPTY, COLUMNS, (table,))
            keys = [name for name, kind, key in listed if key and kind.upper() == "INTEGER"]
            rowid = keys if sum(bool(row[2]) for row in listed) == 1 else []
            names = [name for name, *_ in listed if (table, name) in read and name not in rowid]
            if names:
                found[table] = tuple(names[:MOST_COLUMNS])
        for table in signs_of(before).scans:  # for a foreign key no column is read
            referring = self._judge.rows(EMPTY, REFERRING, (table,))
            if table not in found and referring:
                found[table] = tuple(name for (name,) in referring)
        return found

    def _search(
        self, before: Steps, columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[list[TriedIndex], Steps]:
        """Widens the indexes that the planner takes, while it uses what is added.

        Returns:
            Those that make the plan a better one, and that plan.
        """
        taken: tuple[TriedIndex, ...] = ()
        with self.undone():
            for table in columns:  # else one that exists is taken for what it begins
                for (name,) in self._judge.rows(EMPTY, INDEXES, (table,)):
                    self._judge.do(EMPTY, f"DROP INDEX {in_quotes(name)}")
            for _ in range(MOST_TERMS):
                wider = self._taken(taken, columns)
                if wider == taken:
                    break
                taken = wider
            taken = self._with_all_compared(taken or self._grouping(before, columns), columns)
        found, plan = self._better([], before, taken)
        found, plan = self._better(found, plan, anycase_after(taken, columns, self._quoted))
        return (found, plan) if found else self._better([], before, self._on_expressions(columns))

    def _better(
        self, known: list[TriedIndex], before: Steps, indexes: Sequence[TriedIndex]
    ) -> tuple[list[TriedIndex], Steps]:
        """Those of some indexes that make a plan a better one, and that; else what is known."""
        new = [index for index in indexes if not self._exists(index)]
        after, used = self._plan_with(new)
        if used and is_better(before, after):
            return [new[number] for number in used], after
        return known, before

    def _grouping(
        self, before: Steps, columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[TriedIndex, ...]:
        """One whose first columns are those of GROUP BY or DISTINCT: one of them alone has no group
        together.
        """
        if len(columns) != 1 or not sorting_in(before):
            return ()
        ((table, names),) = columns.items()
        for width in range(2, MOST_TERMS + 1) if len(names) <= MOST_COVERING else ():
            tried = [
                TriedIndex(table, tuple(map(TriedTerm, terms)))
                for terms in permutations(names, width)
            ]
            after, used = self._plan_with(tried)
            if used and sorting_in(after) < sorting_in(before):
                return tuple(tried[number] for number in used)
        return ()

    def _with_all_compared(
        self, taken: tuple[TriedIndex, ...], columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[TriedIndex, ...]:
        """The indexes with further columns that are compared for equality before those that were
        found: the planner takes one that is in order before one that finds fewer rows, not knowing
        how few.
        """
        for place in range(len(taken)):
            for name in columns.get(taken[place].table, ()):
                known = taken[place]
                if name in known.columns or len(known.terms) > MOST_TERMS:
                    continue
                first = TriedIndex(known.table, (TriedTerm(name), *known.terms))
                wider = (*taken[:place], first, *taken[place + 1 :])
                (before, _), (after, used) = self._plan_with(taken), self._plan_with(wider)
                is_better = compared_in(after) > compared_in(before)
                if place in used and is_better and sorting_in(after) <= sorting_in(before):
                    taken = wider
        return taken

    def _on_expressions(self, columns: Mapping[str, tuple[str, ...]]) -> list[TriedIndex]:
        """Indexes on the expressions that the statement compares, and on its columns without regard
        to case, as far as SQLite allows them.
        """
        found = []
        for table, names in columns.items():
            anycase = [f"{self._quoted(name)}{ANYCASE}" for name in names]
            computed = [
                one for one in expressions_of(self._statement, names) if not self._is_own(one)
            ]
            for expression in (*computed, *anycase):
                index = TriedIndex(table, (TriedTerm(expression, is_expression=True),))
                with self.undone(), suppress(StatementError):
                    self._judge.do(EMPTY, index.sql(f"{TRIED}0", in_quotes))
                    found.append(index)
        return found

    def _is_own(self, expression: str) -> bool:
        """Whether it has a function of the program's own: no index can be made of it elsewhere."""
        sql = "SELECT count(*) FROM pragma_function_list WHERE name = lower(?) AND builtin"
        return any(
            not self._judge.rows(EMPTY, sql, (name,))[0][0]
            for name in functions_in(tokens_of(expression))
        )

    def _taken(
        self, taken: tuple[TriedIndex, ...], columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[TriedIndex, ...]:
        """The indexes that the planner takes of those with one more term, each as far as it is
        used. Terms that are compared for equality come first: after a range no further one is
        searched by.
        """
        before, _ = self._plan_with(taken)
        wider = list(dict.fromkeys(wider_ones(taken, columns, sorts=bool(sorting_in(before)))))
        found: tuple[TriedIndex, ...] = ()
        while True:
            after, used = self._plan_with(wider)
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

    def _plan_with(self, indexes: Sequence[TriedIndex]) -> tuple[Steps, Mapping[int, str]]:
        """The plan with indexes; the numbers of those in it, with what is compared in them."""
        with self.undone():
            for number, index in enumerate(indexes):
                self._judge.do(EMPTY, index.sql(f"{TRIED}{number}", in_quotes))
            plan = self.plan()
        used: dict[int, str] = {}
        for step in plan:
            found = USED.search(step)
            if not found or int(found[1]) >= len(indexes):  # another is the database's own
                continue
            number = int(found[1])
            is_end = "SEARCH" in step and not found[2]  # max(): its end is searched, as a value is
            listed = f"{indexes[number].columns[0]}=" if is_end else found[2] or ""
            used[number] = used.get(number, "") + listed
        return plan, used

    def _exists(self, index: TriedIndex) -> bool:
        """Whether one that exists begins with it."""
        found: dict[str, list[TriedTerm]] = {}
        for name, column, is_descending in self._judge.rows(EMPTY, KEYS, (index.table,)):
            found.setdefault(name, []).append(TriedTerm(column, bool(is_descending)))
        width = len(index.terms)
        return any(tuple(terms[:width]) == index.terms for terms in found.values())

    def _differing(
        self, before: Steps, columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of scanned tables that an index would serve, had they another type; and those
        that one would serve, had they no collation of their own.
        """
        types: list[str] = []
        collations: list[str] = []
        for table, names in columns.items() if signs_of(before).scans else ():
            listed = self._judge.rows(EMPTY, COLUMNS, (table,))
            own = {name: kind for name, kind, _ in listed}
            for name in names:
                if self._would_serve(before, table, listed, name, own[name]):
                    collations.append(f"{table}.{name}")
                elif any(
                    self._would_serve(before, table, listed, name, kind) for kind in OTHER_TYPES
                ):
                    types.append(f"{table}.{name}")
        return tuple(types), tuple(collations)

    def _would_serve(
        self,
        before: Steps,
        table: str,
        listed: Sequence[tuple[str, str, int]],
        name: str,
        kind: str,
    ) -> bool:
        """Whether an index on a column would be used, were that of another type."""
        typed = ", ".join(
            f"{in_quotes(column)} {kind if column == name else own}"
            + (" PRIMARY KEY" if key and own.upper() == "INTEGER" else "")
            for column, own, key in listed
        )
        with self.undone(), suppress(StatementError):
            self._judge.do(EMPTY, f"DROP TABLE {in_quotes(table)}")
            self._judge.do(EMPTY, f"CREATE TABLE {in_quotes(table)} ({typed})")
            plan = self.plan()
            if plan != before and not any("AUTOMATIC" in step for step in plan):
                return False  # it is more that has changed
            after, used = self._plan_with([TriedIndex(table, (TriedTerm(name),))])
            return bool(used) and compared_in(after) > compared_in(before)
        return False

    def _quoted(self, name: str) -> str:
        """A name as SQL, in quotes where SQLite wants them."""
        if SIMPLE.fullmatch(name):
            with suppress(StatementError):
                self._judge.rows(EMPTY, f"EXPLAIN SELECT 1 AS {name}")
                return name
        return in_quotes(name)

    @contextmanager
    def undone(self) -> Iterator[None]:
        self._judge.do(EMPTY, "SAVEPOINT queryprof")
        try:
            yield
        finally:
            self._judge.do(EMPTY, "ROLLBACK TO queryprof")
            self._judge.do(EMPTY, "RELEASE queryprof")
