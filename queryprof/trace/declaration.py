"""Declare the tables of a trace: columns, their meaning, and how to merge two rows.

These are plain classes: programs that write a trace import them, and dataclasses take 11 ms.
"""

from __future__ import annotations

KEY, SUM, MOST, LEAST, FIRST, LONGEST, LAST = range(7)
"""How a column is merged when two rows have the same key:

- KEY: the value is the same in both
- SUM: add
- MOST: the larger value
- LEAST: the smaller value; rows without calls are ignored
- FIRST: the first known value
- LONGEST: the value of the row with the larger `max_ns`
- LAST: the later value
"""

REFERENCES = {
    "path_id": "stack",
    "frames": "frame",
    "end_statement_id": "statement",
    "end_path_id": "stack",
}
"""The referenced table of columns not named TABLE_id. "frames" is a list of ids."""


class Column:
    """A column.

    Attributes:
        role: KEY, SUM and so on.
        is_optional: whether the column may be NULL, which means unknown.
    """

    __slots__ = ("is_optional", "meaning", "name", "role", "sql_type")

    def __init__(
        self,
        name: str,
        meaning: str = "",
        role: int = SUM,
        sql_type: str = "INTEGER",
        is_optional: bool = False,
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.role = role
        self.sql_type = sql_type
        self.is_optional = is_optional

    @property
    def reference(self) -> str | None:
        """The table whose `id` this column refers to."""
        found = REFERENCES.get(self.name)
        return found or (self.name.removesuffix("_id") if self.name.endswith("_id") else None)


class Table:
    """A table.

    Attributes:
        columns: key columns first. A table without a key keeps every added row.
        has_id: whether it has a column `id`, before the others, for references.
        index: columns of an index: an owner and a measure.
        kept: how many rows to keep per owner: the rows with the largest measure; 0 to keep all.
        width: the setting with the width of the intervals (ns) that begin at `start_unix_ns`.
        intervals: maximum number of intervals. If there are more, the width of all doubles.
    """

    __slots__ = (
        "columns",
        "has_id",
        "index",
        "intervals",
        "kept",
        "meaning",
        "name",
        "width",
    )

    def __init__(
        self,
        name: str,
        meaning: str,
        columns: tuple[Column, ...],
        has_id: bool = False,
        index: tuple[str, ...] = (),
        kept: int = 0,
        width: str = "",
        intervals: int = 0,
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.columns = columns
        self.has_id = has_id
        self.index = index
        self.kept = kept
        self.width = width
        self.intervals = intervals

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, without `id`."""
        return tuple([column.name for column in self.columns])

    @property
    def ordered_names(self) -> tuple[str, ...]:
        """The names of a row's values in order, with the id first if there is one."""
        return (("id",) if self.has_id else ()) + self.names

    @property
    def key(self) -> tuple[str, ...]:
        return self._columns_with(KEY)

    @property
    def sums(self) -> tuple[str, ...]:
        return self._columns_with(SUM)

    @property
    def value_names(self) -> tuple[str, ...]:
        """The names of the columns that are not in the key."""
        return tuple([column.name for column in self.columns if column.role != KEY])

    def _columns_with(self, role: int) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns if column.role == role])


def key_column(name: str, meaning: str = "", sql_type: str = "INTEGER") -> Column:
    return Column(name, meaning, KEY, sql_type)


def text_column(name: str, meaning: str = "", role: int = KEY) -> Column:
    return Column(name, meaning, role, "TEXT")


def maximum_column(name: str, meaning: str = "") -> Column:
    return Column(name, meaning, MOST)


def last_value_column(name: str, meaning: str = "", sql_type: str = "INTEGER") -> Column:
    return Column(name, meaning, LAST, sql_type)


def nullable_column(name: str, meaning: str, sql_type: str = "TEXT", role: int = LAST) -> Column:
    """Return a column that may be NULL."""
    return Column(name, meaning, role, sql_type, is_optional=True)


def histogram_table(name: str, *owner: Column, count: str = "count") -> Table:
    return Table(
        name,
        "Durations (ns) or numbers: how many fell in each bucket. Bucket b < 16 is b; above, an"
        " octave has 16 buckets: from (16 + b % 16) << (b / 16 - 1) on.",
        (*owner, key_column("bucket"), Column(count)),
    )


STATEMENT_KEY = (key_column("statement_id"), key_column("path_id"))
