"""Reduce a database to its past: the first rows of each table, and the rows to which they refer.

A random sample would thin out both sides of a join. The first rows resemble the database at an
earlier time.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from itertools import pairwise
from math import ceil

from queryprof.sql.clauses import comparisons_of
from queryprof.sql.names import quoted
from queryprof.sql.operands import operand_column
from queryprof.sql.tokens import Token, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SMALL_ROWS = 16
"""Tables with at most this many rows, such as a table of settings, keep all rows."""

FEW_ROWS, FEW_SHARE = 50, 16
"""A value is near an end of its column if at most FEW_ROWS rows, and at most one in FEW_SHARE rows,
are beyond it.
"""

BY_RANK = frozenset({"=", "==", "<", ">", "<=", ">=", "IN", "BETWEEN"})

TABLES = "SELECT name, rootpage FROM main.sqlite_master WHERE type = 'table' ORDER BY name"
TRIGGERS = "SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger' ORDER BY name"


def keep_first(con: sqlite3.Connection, share: int) -> None:
    """Keep the first 1/share of each table's rows, by rowid, and delete all others.

    Rows to which the remaining rows refer are kept as well. Virtual tables and WITHOUT ROWID tables
    keep all rows.

    Args:
        con: a connection to a copy, in autocommit mode and without enforced foreign keys.
    """
    triggers = con.execute(TRIGGERS).fetchall()
    for name, _ in triggers:
        con.execute(f"DROP TRIGGER main.{quoted(name)}")
    con.execute("BEGIN")
    tables = {name: f"temp.kept_{at}" for at, name in enumerate(tables_with_rowid(con))}
    for name, kept in tables.items():
        con.execute(f"CREATE TABLE {kept} (id INTEGER PRIMARY KEY)")
        rows = count_rows_of(con, name)
        most = rows if rows <= SMALL_ROWS else max(1, rows // share)
        con.execute(
            f"INSERT INTO {kept} SELECT rowid FROM main.{quoted(name)} ORDER BY rowid LIMIT ?",
            (most,),
        )
    for _ in tables:
        if not sum(_keep_parents(con, name, tables) for name in tables):
            break
    for name, kept in tables.items():
        con.execute(f"DELETE FROM main.{quoted(name)} WHERE rowid NOT IN (SELECT id FROM {kept})")
        con.execute(f"DROP TABLE {kept}")
    con.execute("COMMIT")
    for _, sql in triggers:
        con.execute(sql)


def tables_with_rowid(con: sqlite3.Connection) -> list[str]:
    """Return the ordinary tables with rowids, without the shadow tables of virtual tables."""
    found = con.execute(TABLES).fetchall()
    virtual = tuple(f"{name}_" for name, root in found if not root)
    ordinary = [
        name
        for name, root in found
        if root and not name.startswith(("sqlite_", *virtual) if virtual else "sqlite_")
    ]
    return [name for name in ordinary if _has_rowid(con, name)]


def count_rows_of(con: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    ((rows,),) = con.execute(f"SELECT count(*) FROM main.{quoted(table)}")
    return int(rows)


def _has_rowid(con: sqlite3.Connection, table: str) -> bool:
    with suppress(sqlite3.OperationalError):
        con.execute(f"SELECT rowid FROM main.{quoted(table)} LIMIT 0")
        return True
    return False


def _keep_parents(con: sqlite3.Connection, child: str, tables: dict[str, str]) -> int:
    """Keep the rows to which a table's kept rows refer. Return the number of added rows."""
    before = con.total_changes
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    for id_, _, parent, column, to, *_ in con.execute(f"PRAGMA foreign_key_list({quoted(child)})"):
        keys.setdefault(id_, []).append((parent, column, to))
    lower = {name.lower(): name for name in tables}
    for columns in keys.values():
        parent = lower.get(columns[0][0].lower())
        if parent is None:
            continue
        pairs = " AND ".join(
            f"p.{quoted(to) if to else 'rowid'} = c.{quoted(column)}" for _, column, to in columns
        )
        with suppress(sqlite3.OperationalError):  # the foreign key names a missing column
            con.execute(
                f"INSERT OR IGNORE INTO {tables[parent]} SELECT p.rowid FROM {tables[child]} AS k"
                f" JOIN main.{quoted(child)} AS c ON c.rowid = k.id"
                f" JOIN main.{quoted(parent)} AS p ON {pairs}"
            )
    return con.total_changes - before


class Ranks:
    """Replaces values by values of the same rank in the smaller copy.

    Args:
        whole: a connection to the whole database.
        past: a connection to the copy with the first rows.
    """

    def __init__(self, whole: sqlite3.Connection, past: sqlite3.Connection) -> None:
        self._whole, self._past = whole, past
        self._columns = {
            name.lower(): {
                row[1].lower() for row in past.execute(f"PRAGMA table_info({quoted(name)})")
            }
            for name in tables_with_rowid(past)
        }
        self._known: dict[tuple[str, str, object], object] = {}

    def values(
        self, text: str, given: tuple[object, ...] | dict[object, object]
    ) -> tuple[object, ...] | dict[object, object]:
        """Return a statement's parameters with values of the same rank in the copy."""
        found: dict[object, object] = {}
        found.update(given if isinstance(given, dict) else enumerate(given))
        for key, table, column in self._compared(text):
            if key in found and isinstance(found[key], int | float | str):
                found[key] = self._value(table, column, found[key])
        return found if isinstance(given, dict) else tuple(found.values())

    def _compared(self, text: str) -> Iterator[tuple[object, str, str]]:
        """For each parameter compared with a column, yield its position or name, the table and the
        column.
        """
        before = _names_before(text)
        keys = _keys_of_parameters(text)
        for one in comparisons_of(text):
            if one.operator not in BY_RANK:
                continue
            end = one.right_range.stop  # after BETWEEN's first value: AND, second value
            last = one.tokens[end + 1 : end + 2] if one.operator == "BETWEEN" else ()
            sides = (one.left, (*one.right, *last)), (one.right, one.left)
            for column_side, value_side in sides:
                column = operand_column(column_side)
                table = self._table_of(column_side, column, before) if column else ""
                if not table:
                    continue
                for token in value_side:
                    if token.kind == "parameter":
                        yield keys[token.start], table, column

    def _table_of(self, operand: Sequence[Token], column: str, before: dict[str, list[str]]) -> str:
        """Return the table of a column; "" if unknown. An alias is resolved to the name before
        it.
        """
        alias = operand[-3].named if len(operand) > 2 else ""
        names = [alias, *before.get(alias, ())] if alias else list(before)
        return next((name for name in names if column in self._columns.get(name, ())), "")

    def _value(self, table: str, column: str, value: object) -> object:
        key = table, column, value
        if key not in self._known:
            self._known[key] = self._same_rank(table, column, value)
        return self._known[key]

    def _same_rank(self, table: str, column: str, value: object) -> object:
        """Return the copy's value with the same rank. A value near an end of its column keeps its
        distance from this end, so that the ten newest orders stay ten.
        """
        name, source = quoted(column), quoted(table)
        counts = f"count(*) FILTER (WHERE {name} <= ?), count({name})"
        query = f"SELECT {counts} FROM main.{source}"
        below, rows = self._whole.execute(query, (value,)).fetchone()
        ((left,),) = self._past.execute(f"SELECT count({name}) FROM main.{source}")
        if not below or not left:
            return value
        above = rows - below
        if above <= min(FEW_ROWS, rows / FEW_SHARE):
            place = left - above - 1
        elif below <= min(FEW_ROWS, rows / FEW_SHARE):
            place = below - 1
        else:
            place = ceil(below / rows * left) - 1
        known = f"SELECT {name} FROM main.{source} WHERE {name} NOT NULL"
        ((found,),) = self._past.execute(
            f"{known} ORDER BY {name} LIMIT 1 OFFSET ?", (min(left - 1, max(0, place)),)
        )
        return found


def _names_before(text: str) -> dict[str, list[str]]:
    """Return the names that directly precede each name in a statement."""
    found: dict[str, list[str]] = {}
    tokens = [token for token in tokens_of(text) if token.keyword != "AS"]
    for first, second in pairwise(tokens):
        if second.named:
            found.setdefault(second.named, []).append(first.named)
    return found


def _keys_of_parameters(text: str) -> dict[int, object]:
    """Return the position (from 0) or name of each parameter, by its offset in the text."""
    found: dict[int, object] = {}
    largest = 0
    for token in tokens_of(text):
        if token.kind != "parameter":
            continue
        if token.text[0] != "?":
            found[token.start] = token.text[1:]
            continue
        number = int(token.text[1:]) if token.text[1:] else largest + 1
        largest = max(largest, number)
        found[token.start] = number - 1
    return found
