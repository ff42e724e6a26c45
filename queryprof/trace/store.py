"""Write trace files. Adding a row merges it into the existing row with the same key.

The conversion of recordings and the merge of traces use this module.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager

from queryprof.errors import TraceError
from queryprof.trace.declaration import FIRST, KEY, LAST, LEAST, LONGEST, MOST, SUM
from queryprof.trace.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from queryprof.trace.tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queryprof.trace.declaration import Table
    from queryprof.trace.processes import Identity

MERGE_SQL = {
    SUM: "{0} = {0} + excluded.{0}",
    MOST: "{0} = max({0}, excluded.{0})",
    # An addition may have counters but no calls. It then has no shortest call.
    LEAST: (
        "{0} = CASE WHEN excluded.count = 0 THEN {0} WHEN count = 0 THEN excluded.{0}"
        " ELSE min({0}, excluded.{0}) END"
    ),
    FIRST: "{0} = coalesce({0}, excluded.{0})",
    LONGEST: (
        "{0} = CASE WHEN excluded.{0} IS NOT NULL AND excluded.max_ns >= max_ns"
        " THEN excluded.{0} ELSE {0} END"
    ),
    LAST: "{0} = excluded.{0}",
}
"""SQL that merges a column of two rows, by role."""


PAGE_BYTES = 1024
"""Small pages, because each table takes at least one page. A short worker's trace is little more
than 60 tables and indexes: 93 kB, compared with 254 kB for pages of 4,096 bytes.
"""

MAX_UNSETTLED = 8192
"""Number of added rows after which surplus rows are removed."""


def storable_value(value: object) -> object:
    """Return a value that SQLite can store: characters that UTF-8 cannot encode become escapes."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode()


class TraceStore:
    """An open trace file. Rows are added inside one transaction at a time.

    Args:
        path: the file, which is created with mode 0600 and must not exist; or ":memory:".

    Raises:
        FileExistsError: the file exists.
        TraceError: the file cannot be created.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            if path != ":memory:":
                # Readable only by its owner: SQL texts and file names belong to the program.
                made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                if hasattr(os, "fchmod"):
                    os.fchmod(made, 0o600)  # regardless of the umask
                os.close(made)
            self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            # The file must survive the process, not a crash of the machine: do not wait for the
            # disk.
            self.connection.executescript(
                f"PRAGMA page_size = {PAGE_BYTES};"
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE;"
                f"PRAGMA cache_size = -1024; PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {SCHEMA_VERSION}; BEGIN; {SCHEMA} COMMIT;"
            )
        except FileExistsError:
            raise
        except (OSError, sqlite3.Error) as error:
            raise TraceError(f"{path}: the trace cannot be written: {error}") from error
        self._rows = _table_rows(self.connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction, which an exception rolls back. Nested calls do
        nothing.
        """
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            for rows in self._rows.values():
                rows.write()
            self.remove_surplus()
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self._rows = _table_rows(self.connection)
            raise

    def close(self) -> None:
        self.connection.close()

    def abandon(self) -> None:
        """Roll back to the last commit and close the file."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.connection.close()

    def identities(self) -> set[Identity]:
        """Return the processes in the trace."""
        query = "SELECT pid, start_unix_ns, host FROM process"
        return set(self.connection.execute(query))

    def remove_surplus(self) -> None:
        """Remove surplus rows (see Table.kept), and rows that refer to removed rows.

        Call this method before the transaction ends.
        """
        is_any = False
        for rows in self._rows.values():  # a table comes after the tables it refers to
            is_any = rows.remove_surplus(is_any) or is_any

    def settings(self) -> dict[str, int]:
        """Return the settings by name."""
        return dict(self.connection.execute("SELECT name, value FROM setting"))

    def id(self, table: str, *values: object) -> int:
        """Return the id of the row with these columns. New rows are added at the end of the
        transaction.
        """
        return self._rows[table].id(tuple(map(storable_value, values)))

    def add(self, table: str, rows: Iterable[Sequence[object]]) -> list[int]:
        """Add rows with the columns of their table. Returns their ids, if the table has ids."""
        return self._rows[table].add(rows)

    def add_intervals(self, table: str, width_ns: int, rows: Iterable[Sequence[object]]) -> None:
        """Add intervals. If they are wider or narrower than the stored ones, all get the larger
        width.

        One width must be the other times a power of two.
        """
        facts = TABLE[table]
        (known,) = self.connection.execute(
            "SELECT max(value) FROM setting WHERE name = ?", (facts.width,)
        ).fetchone()
        wide = max(known or 0, width_ns)
        if known and known < wide:
            self._widen_intervals(facts, wide)
        self.add(table, _align_starts(facts, wide, rows))
        first, last = self.connection.execute(
            f"SELECT min(start_unix_ns), max(start_unix_ns) FROM {table}"
        ).fetchone()
        while first is not None and (last - first) // wide >= facts.intervals:
            wide *= 2
            self._widen_intervals(facts, wide)
            first -= first % wide
        self.add("setting", [(facts.width, wide)])

    def _widen_intervals(self, table: Table, width_ns: int) -> None:
        rows = self.connection.execute(f"SELECT * FROM {table.name}").fetchall()
        self.connection.execute(f"DELETE FROM {table.name}")
        self.add(table.name, _align_starts(table, width_ns, rows))

    def merge_into_row(
        self, table: str, number: int, roles: Sequence[int], values: Mapping[str, object]
    ) -> None:
        """Add values to the row with this id, in columns with these roles."""
        columns = [column for column in TABLE[table].columns if column.role in roles]
        joined = [
            MERGE_SQL[column.role].format(column.name).replace("excluded.", ":")
            for column in columns
        ]
        self.connection.execute(
            f"UPDATE {table} SET {', '.join(joined)} WHERE id = {number}",
            {column.name: storable_value(values[column.name]) for column in columns},
        )


class _TableRows:
    """The rows of one table."""

    def __init__(self, connection: sqlite3.Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._key_width = len(table.key)
        self._texts = [at for at, column in enumerate(table.columns) if column.sql_type == "TEXT"]
        self._sql = _insert_sql(table)
        self._known: dict[tuple[object, ...], int] | None = None
        """Ids by key."""
        self._added: dict[tuple[object, ...], int] = {}
        """Ids by all columns, of the rows that `id` numbered."""
        self._new: list[tuple[object, ...]] = []
        self._last = 0
        self._unsettled = 0
        """Rows added since surplus rows were last removed."""
        self._refers_to_kept = any(
            TABLE[column.reference].kept for column in table.columns if column.reference
        )

    def id(self, values: tuple[object, ...]) -> int:
        number = self._added.get(values)
        if number is None:
            number = self._added[values] = self._number(values)
            self._new.append((number, *values))
        return number

    def add(self, rows: Iterable[Sequence[object]]) -> list[int]:
        stored = self._storable_rows(rows)
        if not self._table.has_id:
            cursor = self._connection.executemany(self._sql, stored)
            self._count(cursor.rowcount)
            return []
        numbers: list[int] = []

        def numbered() -> Iterator[tuple[object, ...]]:
            for row in stored:
                numbers.append(self._number(row))
                yield (numbers[-1], *row)

        self._connection.executemany(self._sql, numbered())
        self._count(len(numbers))
        return numbers

    def _count(self, added: int) -> None:
        self._unsettled += added
        if self._unsettled > MAX_UNSETTLED or not self._connection.in_transaction:
            self.remove_surplus()

    def remove_surplus(self, is_of_removed: bool = True) -> bool:
        """Remove surplus rows (see Table.kept), and rows that refer to removed rows.

        This reads all rows, so it must not run after every addition.

        Args:
            is_of_removed: whether rows of the tables that this table refers to were removed.

        Returns:
            Whether surplus rows may have been removed.
        """
        is_due, self._unsettled = bool(self._table.kept and self._unsettled), 0
        if is_due:
            self._keep_largest()
        if is_of_removed and self._refers_to_kept:
            self._remove_orphans()
        return is_due

    def write(self) -> None:
        """Add the rows that `id` numbered."""
        self._connection.executemany(self._sql, self._new)
        self._new = []

    def _number(self, row: tuple[object, ...]) -> int:
        if self._known is None:
            self._known = self._read_known()
        key = row[: self._key_width]
        known = self._known.get(key) if key else None
        if known is None:
            known = self._last = self._last + 1
            if key:
                self._known[key] = known
        return known

    def _read_known(self) -> dict[tuple[object, ...], int]:
        query = f"SELECT {', '.join(('id', *self._table.key))} FROM {self._table.name}"
        rows = self._connection.execute(query).fetchall()
        self._last = max((number for number, *_ in rows), default=0)
        return {tuple(key): number for number, *key in rows} if self._key_width else {}

    def _storable_rows(self, rows: Iterable[Sequence[object]]) -> Iterator[tuple[object, ...]]:
        if not self._texts:
            yield from map(tuple, rows)
            return
        for row in rows:
            for at in self._texts:
                value = row[at]
                if isinstance(value, str) and not value.isascii():
                    row = (*row[:at], storable_value(value), *row[at + 1 :])  # noqa: PLW2901
            yield row if type(row) is tuple else tuple(row)

    def _remove_orphans(self) -> None:
        """Remove rows that refer to removed rows."""
        for column in self._table.columns:
            if column.reference and TABLE[column.reference].kept:
                self._connection.execute(
                    f"DELETE FROM {self._table.name} WHERE {column.name} NOT IN"
                    f" (SELECT id FROM {column.reference})"
                )

    def _keep_largest(self) -> None:
        name, (owner, measure) = self._table.name, self._table.index
        self._connection.execute(
            f"DELETE FROM {name} WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
            f" (PARTITION BY {owner} ORDER BY {measure} DESC, id) AS place FROM {name})"
            f" WHERE place > {self._table.kept})"
        )


def _table_rows(connection: sqlite3.Connection) -> Mapping[str, _TableRows]:
    return {name: _TableRows(connection, table) for name, table in TABLE.items()}


def _insert_sql(table: Table) -> str:
    """Return an INSERT with a parameter per column, the id first if there is one."""
    names = ("id", *table.names) if table.has_id else table.names
    inserted = (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    )
    if not table.key:
        return inserted
    joined = [MERGE_SQL[c.role].format(c.name) for c in table.columns if c.role != KEY]
    then = f"UPDATE SET {', '.join(joined)}" if joined else "NOTHING"
    return f"{inserted} ON CONFLICT ({', '.join(table.key)}) DO {then}"


def _align_starts(
    table: Table, width_ns: int, rows: Iterable[Sequence[object]]
) -> Iterator[Sequence[object]]:
    """Yield rows with their start rounded down to a multiple of the width."""
    at = table.names.index("start_unix_ns")
    for row in rows:
        start: int = row[at]  # type: ignore[assignment]  # declared as a number
        yield (*row[:at], start - start % width_ns, *row[at + 1 :])
