"""Find out how SQLite's planner could access each table of a statement.

This module prepares the statement against virtual tables with the same columns. The planner calls
the xBestIndex of each table (https://www.sqlite.org/vtab.html#the_xbestindex_method) with the
constraints that it could use: the comparisons with their collations, the requested order, and the
columns that the statement reads. There is a call for each join order, branch of an OR, view, common
table expression and subquery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from queryprof.confined.authorizer import LIMIT_LENGTH, MAX_VALUE_BYTES, Authorizer
from queryprof.confined.several import refuse_several_statements
from queryprof.planner.values import placeholders, replace_placeholders
from queryprof.proof.schema import DatabaseSchema, SchemaTable
from queryprof.sql.tokens import Token, tokens_of

EQUAL = frozenset({2, 71, 72})  # =, IS NULL, IS
RANGE = frozenset({4, 8, 16, 32, 70})  # >, <=, <, >=, IS NOT NULL
LIKE, GLOB = 65, 66
USED = EQUAL | RANGE
"""The operators (SQLITE_INDEX_CONSTRAINT_*) that an index search supports."""

ENDS = (("RETURNING",), ("ON", "CONFLICT"))
"""Clauses at the end of a statement that virtual tables do not support. They do not affect which
rows SQLite reads.
"""

MAX_DUMMIES = 20
MODULE = "queryprof_table"


class NotPrepared(Exception):  # noqa: N818  reported to the user; not a bug
    """SQLite cannot prepare the statement. The message comes from SQLite."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A comparison of a column. `operator` is an SQLITE_INDEX_CONSTRAINT_* number, and `value` a
    string constant or None.
    """

    column: str
    operator: int
    collation: str
    value: object


@dataclass(frozen=True, slots=True)
class Access:
    """One way in which the planner could read a table.

    Attributes:
        order: the columns of the requested order, each with whether it is descending.
        used: the columns that the statement reads; None if it reads a column after the first 63,
            because SQLite does not report these one by one.
    """

    table: str
    comparisons: tuple[ComparedColumn, ...]
    order: tuple[tuple[str, bool], ...]
    used: frozenset[str] | None


class Accesses:
    """An empty database with a virtual table for each table of a schema."""

    def __init__(self, schema: DatabaseSchema) -> None:
        # Without a statement cache, SQLite calls xBestIndex each time.
        self._connection = apsw.Connection(":memory:", statementcachesize=0)
        # The statements and the SQL of views are untrusted.
        self._authorizer = Authorizer(modules=frozenset({MODULE}))
        self._connection.authorizer = self._authorizer
        self._connection.limit(LIMIT_LENGTH, MAX_VALUE_BYTES)
        self._met: list[Access] = []
        self.unknown: set[str] = set()
        """Functions and collations that have only a dummy here."""
        module: Any = _VirtualTableModule({table.name: table for table in schema.tables}, self._met)
        self._connection.create_module(MODULE, module, use_bestindex_object=True)
        for table in schema.tables:
            self._execute_all(f'CREATE VIRTUAL TABLE "{_double_quotes(table.name)}" USING {MODULE}')
        for sql in schema.others:
            if re.match(r"CREATE\s+(?:TEMP\w*\s+)?VIEW\b", sql, re.IGNORECASE):
                self._execute_all(sql)

    def close(self) -> None:
        self._connection.close()

    def _execute_all(self, sql: str) -> None:
        try:
            refuse_several_statements(self._connection, sql)
            self._connection.execute(sql)
        except (apsw.Error, ValueError):
            pass  # later statements that use this object fail with its name

    def accesses_of(self, sql: str) -> tuple[Access, ...]:
        """Return the ways in which the planner could access each table.

        Each placeholder is replaced by the `placeholder_marker` of its number. So the value of a
        comparison shows which placeholder it comes from.

        Raises:
            NotPrepared: SQLite rejects the statement, for example because a table is missing.
        """
        count = len(placeholders(sql))
        marked = replace_placeholders(
            sql, [f"'{placeholder_marker(number)}'" for number in range(count)]
        )
        reason = ""
        for one in dict.fromkeys(_simpler_versions(marked)):
            for _ in range(MAX_DUMMIES):
                try:
                    refuse_several_statements(self._connection, "EXPLAIN " + one)
                    self._met.clear()
                    self._connection.execute("EXPLAIN " + one).fetchall()
                except apsw.AuthError:
                    raise NotPrepared(f"refused: {self._authorizer.refused}") from None
                except (apsw.Error, ValueError) as error:
                    reason = str(error)
                    if not self._add_dummy(reason):
                        break
                else:
                    return tuple(dict.fromkeys(self._met))
        raise NotPrepared(reason.removeprefix("SQLError: "))

    def _add_dummy(self, message: str) -> bool:
        function = re.search(r"no such function: (\w+)", message)
        collation = re.search(r"no such collation sequence: (\w+)", message)
        if function:
            self._connection.create_scalar_function(
                function[1], lambda *_: None, deterministic=True
            )
            self.unknown.add(f"function {function[1]}")
        elif collation:
            self._connection.create_collation(
                collation[1], lambda left, right: (left > right) - (left < right)
            )
            self.unknown.add(f"collation {collation[1]}")
        return bool(function or collation)


def _simpler_versions(sql: str) -> Iterator[str]:
    """Yield the statement, then versions with fewer and fewer parts that virtual tables do not
    support.
    """
    yield sql
    sql = _without_indexed_by(sql)
    yield sql
    for words in ENDS:
        tokens = tokens_of(sql)
        keywords = tuple(token.keyword for token in tokens)
        for place, token in enumerate(tokens):
            if token.depth == 0 and keywords[place : place + len(words)] == words:
                sql = sql[: token.start]
                break
        yield sql


def _without_indexed_by(sql: str) -> str:
    """Remove INDEXED BY and NOT INDEXED from a statement."""
    parts, end = [], 0
    tokens = tokens_of(sql)
    for place, token in enumerate(tokens):
        if token.keyword != "INDEXED":
            continue
        first, last = (
            (place - 1, place) if _is_not_keyword(tokens, place - 1) else (place, place + 2)
        )
        if last < len(tokens):
            parts.append(sql[end : tokens[first].start])
            end = tokens[last].start + len(tokens[last].text)
    return "".join([*parts, sql[end:]])


def _is_not_keyword(tokens: Sequence[Token], place: int) -> bool:
    return place >= 0 and tokens[place].keyword == "NOT"


def placeholder_marker(number: int) -> str:
    """Return the string constant that replaces a placeholder."""
    return f"queryprof?{number}"


class _AccessRecordingTable:
    """A virtual table that records the planner's xBestIndex calls. No statement reads its rows."""

    def __init__(self, table: SchemaTable, met: list[Access]) -> None:
        self._table, self._met = table, met

    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802  APSW's name
        names = [column.name for column in self._table.columns]

        def name(number: int) -> str:
            return names[number] if 0 <= number < len(names) else "rowid"

        comparisons = tuple(
            ComparedColumn(
                name(info.get_aConstraint_iColumn(number)),
                info.get_aConstraint_op(number),
                info.get_aConstraint_collation(number).upper(),
                _string_constant(info, number),
            )
            for number in range(info.nConstraint)
            if info.get_aConstraint_usable(number)
        )
        order = tuple(
            (name(info.get_aOrderBy_iColumn(number)), info.get_aOrderBy_desc(number))
            for number in range(info.nOrderBy)
        )
        used = None if 63 in info.colUsed else frozenset(name(number) for number in info.colUsed)
        self._met.append(Access(self._table.name, comparisons, order, used))
        good = 0
        for number in range(info.nConstraint):
            if info.get_aConstraint_usable(number) and info.get_aConstraint_op(number) in USED:
                good += 1
                # Claim the constraint: SQLite looks at all branches of an OR only if each can use
                # an index.
                info.set_aConstraintUsage_argvIndex(number, good)
        info.estimatedCost = info.estimatedRows = max(1, self._table.rows >> (6 * good))
        return True

    def Disconnect(self) -> None:  # noqa: N802
        """Do nothing: there is nothing to release."""

    Destroy = Disconnect

    def UpdateInsertRow(self, *_: object) -> None:  # noqa: N802
        """SQLite needs this method to plan writes. It never calls the method, because statements
        are only explained.
        """

    UpdateChangeRow = UpdateDeleteRow = UpdateInsertRow


def _string_constant(info: Any, number: int) -> object:
    value = info.get_aConstraint_rhs(number)
    return value if isinstance(value, str) else None


class _VirtualTableModule:
    def __init__(self, tables: dict[str, SchemaTable], met: list[Access]) -> None:
        self._tables, self._met = tables, met

    def Create(self, _connection: object, _module: str, _schema: str, name: str, *_: object) -> Any:  # noqa: N802
        table = self._tables[name]
        columns = ", ".join(
            f'"{_double_quotes(column.name)}" {column.type} COLLATE'
            f' "{_double_quotes(column.collation)}"'
            for column in table.columns
        )
        return f"CREATE TABLE t ({columns})", _AccessRecordingTable(table, self._met)

    Connect = Create


def _double_quotes(name: str) -> str:
    return name.replace('"', '""')
