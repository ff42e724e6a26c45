"""Which index serves a statement: SQLite's planner chooses, on an empty copy of the schema.

Indexes on the columns that the statement reads are created there, of one column, then of two and three;
those that the planner takes are kept, as far as it uses their columns. No text is searched for columns:
SQLite's authorizer says which a statement reads (https://www.sqlite.org/c3ref/set_authorizer.html), and
the plan which of an index it uses (https://www.sqlite.org/eqp.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from queryprof.analysis.findings.planning import Served
from queryprof.analysis.plans import Steps, is_worse, normal_form, signs_of
from queryprof.proof.dummies import with_dummies
from queryprof.proof.expressions import expressions_of
from queryprof.proof.judging import EMPTY, Judge, StatementError
from queryprof.proof.tried_index import TriedIndex, TriedTerm
from queryprof.proof.values import all_named, nulls_of
from queryprof.sql.clauses import functions_in
from queryprof.sql.tokens import tokens_of

MOST_TERMS = 3
MOST_COLUMNS = 16
"""Of a table that are tried."""

COLUMNS = (
    "SELECT c.name, c.type, c.pk FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c"
    " WHERE t.name = ? AND t.type = 'table' AND t.schema = 'main' AND c.hidden <> 1"
)
REFERRING = 'SELECT DISTINCT "from" FROM pragma_foreign_key_list(?)'
NAMES = "SELECT name FROM sqlite_schema"
INDEXES = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?"
KEYS = (
    'SELECT i.name, k.name, k."desc" FROM pragma_index_list(?) AS i, pragma_index_xinfo(i.name) AS k'
    " WHERE k.key AND NOT i.partial ORDER BY i.name, k.seqno"
)
OTHER_TYPES = ("TEXT", "INTEGER", "")
USED = re.compile(r"USING (?:COVERING )?INDEX queryprof_(\d{1,4})(?: \((.*)\))?$")
SEARCHED = re.compile(r"\s*SEARCH \S+ USING (?!AUTOMATIC).*\((.*)\)$")
COMPARED = re.compile(r"[=<>]+")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Trial:
    """One statement on the empty copy."""

    def __init__(self, judge: Judge, statement: str) -> None:
        self._judge, self._statement = judge, all_named(statement)
        self._values = nulls_of(self._statement)

    def _explained(self, how: str) -> Sequence[tuple[Any, ...]]:
        sql = f"{how} {self._statement}"
        return with_dummies(self._judge, EMPTY, lambda: self._judge.rows(EMPTY, sql, self._values))

    def program(self) -> Sequence[tuple[int, str, int, int]]:
        """The address, opcode, P1 and P2 of its instructions there. Raises StatementError."""
        return [(at, code, p1, p2) for at, code, p1, p2, *_ in self._explained("EXPLAIN")]

    def plan(self) -> Steps:
        """Its plan there. Raises StatementError."""
        rows = self._explained("EXPLAIN QUERY PLAN")
        depths, lines = {0: -1}, []
        for number, parent, _, detail in rows:
            depths[number] = depths.get(parent, -1) + 1
            lines.append("  " * depths[number] + detail)
        return normal_form("\n".join(lines))

    def served(self, before: Steps) -> Served:
        """The indexes that make the plan a better one, or the columns whose types keep it from one."""
        columns = self._columns(before)
        found, after = self._search(before, columns)
        found = [one for one in found if not any(_begins(one, other) for other in found)]
        if found:
            scans = signs_of(after).scans + signs_of(after).index_scans
            return Served(
                before,
                " ".join(f"{index.sql(self._free(index.name), self._quoted)};" for index in found),
                tuple(term.column for index in found for term in index.terms),
                is_plain=not any(term.is_expression for index in found for term in index.terms),
                still_scans=len(scans) > 1,  # one may be the outermost loop
                searches=_compared(after) > _compared(before),
                sorts_less=_sorting(after) < _sorting(before),
                by_range=_is_by_range(after),
            )
        types, collations = self._differing(before, columns)
        return Served(before, differing=types, recollated=collations)

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
        """The columns that the statement reads, by their table; and those of foreign keys to its table."""
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
        with self._undone():
            for table in columns:  # else one that exists is taken for what it begins
                for (name,) in self._judge.rows(EMPTY, INDEXES, (table,)):
                    self._judge.do(EMPTY, f"DROP INDEX {_in_quotes(name)}")
            for _ in range(MOST_TERMS):
                wider = self._taken(taken, columns)
                if wider == taken:
                    break
                taken = wider
            taken = self._with_all_compared(taken, columns)
        for indexes in (taken, self._on_expressions(columns)):
            new = [index for index in indexes if not self._exists(index)]
            after, used = self._plan_with(new)
            if used and _is_better(before, after):
                return [new[number] for number in used], after
        return [], before

    def _with_all_compared(
        self, taken: tuple[TriedIndex, ...], columns: Mapping[str, tuple[str, ...]]
    ) -> tuple[TriedIndex, ...]:
        """The indexes with further columns that are compared for equality before those that were found:
        the planner takes one that is in order before one that finds fewer rows, not knowing how few.
        """
        for place in range(len(taken)):
            for name in columns.get(taken[place].table, ()):
                known = taken[place]
                if name in known.columns or len(known.terms) > MOST_TERMS:
                    continue
                first = TriedIndex(known.table, (TriedTerm(name), *known.terms))
                wider = (*taken[:place], first, *taken[place + 1 :])
                (before, _), (after, used) = self._plan_with(taken), self._plan_with(wider)
                is_better = _compared(after) > _compared(before)
                if place in used and is_better and _sorting(after) <= _sorting(before):
                    taken = wider
        return taken

    def _on_expressions(self, columns: Mapping[str, tuple[str, ...]]) -> list[TriedIndex]:
        """Indexes on the expressions that the statement compares, and on its columns without regard to
        case, as far as SQLite allows them.
        """
        found = []
        for table, names in columns.items():
            anycase = [f"{self._quoted(name)} COLLATE NOCASE" for name in names]
            computed = [
                one for one in expressions_of(self._statement, names) if not self._is_own(one)
            ]
            for expression in (*computed, *anycase):
                index = TriedIndex(table, (TriedTerm(expression, is_expression=True),))
                with self._undone(), suppress(StatementError):
                    self._judge.do(EMPTY, index.sql("queryprof_0", _in_quotes))
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
        """The indexes that the planner takes of those with one more term, each as far as it is used.
        Terms that are compared for equality come first: after a range no further one is searched by.
        """
        before, _ = self._plan_with(taken)
        wider = list(dict.fromkeys(_wider(taken, columns, sorts=bool(_sorting(before)))))
        found: tuple[TriedIndex, ...] = ()
        while True:
            after, used = self._plan_with(wider)
            is_sorted = _sorting(after) < _sorting(before)
            by_range = [
                wider[n] for n, listed in used.items() if wider[n].is_searched_by_range(listed)
            ]
            narrowed = _as_used(wider, used, is_sorted, taken)
            if not found or not (by_range or set(narrowed) <= set(taken)):
                found = narrowed
            if not by_range:
                return found or taken
            wider = [index for index in wider if index not in by_range]

    def _plan_with(self, indexes: Sequence[TriedIndex]) -> tuple[Steps, Mapping[int, str]]:
        """The plan with indexes; the numbers of those in it, with what is compared in them."""
        with self._undone():
            for number, index in enumerate(indexes):
                self._judge.do(EMPTY, index.sql(f"queryprof_{number}", _in_quotes))
            plan = self.plan()
        used: dict[int, str] = {}
        for step in plan:
            found = USED.search(step)
            if found and int(found[1]) < len(indexes):  # another is the database's own
                used[int(found[1])] = used.get(int(found[1]), "") + (found[2] or "")
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
        """The columns of scanned tables that an index would serve, had they another type; and those that
        one would serve, had they no collation of their own.
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
            f"{_in_quotes(column)} {kind if column == name else own}"
            + (" PRIMARY KEY" if key and own.upper() == "INTEGER" else "")
            for column, own, key in listed
        )
        with self._undone(), suppress(StatementError):
            self._judge.do(EMPTY, f"DROP TABLE {_in_quotes(table)}")
            self._judge.do(EMPTY, f"CREATE TABLE {_in_quotes(table)} ({typed})")
            plan = self.plan()
            if plan != before and not any("AUTOMATIC" in step for step in plan):
                return False  # it is more that has changed
            after, used = self._plan_with([TriedIndex(table, (TriedTerm(name),))])
            return bool(used) and _compared(after) > _compared(before)
        return False

    def _quoted(self, name: str) -> str:
        """A name as SQL, in quotes where SQLite wants them."""
        if SIMPLE.fullmatch(name):
            with suppress(StatementError):
                self._judge.rows(EMPTY, f"EXPLAIN SELECT 1 AS {name}")
                return name
        return _in_quotes(name)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        self._judge.do(EMPTY, "SAVEPOINT queryprof")
        try:
            yield
        finally:
            self._judge.do(EMPTY, "ROLLBACK TO queryprof")
            self._judge.do(EMPTY, "RELEASE queryprof")


def _begins(index: TriedIndex, other: TriedIndex) -> bool:
    """Whether another index has its terms first: that serves what it does."""
    width = len(index.terms)
    same_table = index.table == other.table
    return same_table and len(other.terms) > width and other.terms[:width] == index.terms


def _as_used(
    indexes: Sequence[TriedIndex],
    used: Mapping[int, str],
    is_sorted: bool,
    taken: Sequence[TriedIndex],
) -> tuple[TriedIndex, ...]:
    """The indexes in a plan, without the terms that it has no use for: those of `taken` have one."""
    found: dict[TriedIndex, None] = {}
    for number, listed in used.items():
        index = indexes[number]
        known = [len(one.terms) for one in taken if index.terms[: len(one.terms)] == one.terms]
        width = len(index.terms) if is_sorted else max([index.compared(listed), *known])
        if width:
            found[TriedIndex(index.table, index.terms[:width])] = None
    return tuple(found)


def _wider(
    taken: Sequence[TriedIndex], columns: Mapping[str, tuple[str, ...]], sorts: bool
) -> Iterator[TriedIndex]:
    """The indexes, and those with one more term; of tables that have none yet, those of one term.
    Of equal ones the planner takes the last.
    """
    yield from taken
    for table, names in columns.items():
        of_table = [index for index in taken if index.table == table] or [TriedIndex(table, ())]
        for index in of_table:
            for name in names:
                if name not in index.columns:
                    if sorts and index.terms:
                        yield TriedIndex(table, (*index.terms, TriedTerm(name, is_descending=True)))
                    yield TriedIndex(table, (*index.terms, TriedTerm(name)))


def _is_better(before: Steps, after: Steps) -> bool:
    """Whether a plan searches by more, or sorts less, and reads no more from end to end."""
    if is_worse(before, after):
        return False
    return _compared(after) > _compared(before) or _sorting(after) < _sorting(before)


def _sorting(plan: Steps) -> int:
    """How much it sorts: whole results, and results that are sorted in part."""
    return sum(1 if what.startswith("RIGHT PART") else 2 for what in signs_of(plan).temporary)


def _is_by_range(plan: Steps) -> bool:
    """Whether an index of ours is searched by comparisons that are none for equality."""
    found = [used[2] for step in plan if (used := USED.search(step)) and used[2]]
    return any("=" not in re.sub("[<>]=", "", listed) for listed in found)


def _compared(plan: Steps) -> int:
    """By how many comparisons its tables are searched."""
    found = [SEARCHED.match(step) for step in plan]
    return sum(len(COMPARED.findall(one[1])) for one in found if one)


def _in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
