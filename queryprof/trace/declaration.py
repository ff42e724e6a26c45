"""What a table of a trace is: its columns, what each means, and how two rows become one.

Plain classes: a program that writes its trace imports this, and dataclasses take 11 ms.
"""

from __future__ import annotations

KEY, SUM, MOST, LEAST, FIRST, LONGEST, LAST = range(7)
"""The value of a column when two rows of one key become one: the same in both; the sum; the larger;
the smaller of those that count a call; the first known; that of the row with the larger `max_ns`;
the later.
"""

REFERENCES = {
    "path_id": "stack",
    "frames": "frame",
    "end_statement_id": "statement",
    "end_path_id": "stack",
}
"""The table that a column refers to, if its name is another; "frames" is a list of ids."""


class Column:
    """A column.

    Attributes:
        role: KEY and so on.
        is_optional: it may be NULL: unknown.
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
        """The table whose `id` it holds."""
        found = REFERENCES.get(self.name)
        return found or (self.name.removesuffix("_id") if self.name.endswith("_id") else None)


class Table:
    """A table.

    Attributes:
        columns: those of the key come first. A table without a key keeps every added row.
        has_id: other tables refer to its rows by a number, the column `id` before the others.
        index: columns of an index: an owner and a measure.
        kept: how many rows of each owner are kept, those with the largest measure; 0: all.
        width: the setting with the width of its intervals (ns), which begin at `start_unix_ns`.
        intervals: how many at the most; with more, they become twice as wide.
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
        """The names of its columns, `id` left out."""
        return tuple([column.name for column in self.columns])

    @property
    def in_order(self) -> tuple[str, ...]:
        """The names of a row's values as it is read: the id first, where there is one."""
        return (("id",) if self.has_id else ()) + self.names

    @property
    def key(self) -> tuple[str, ...]:
        return self._with(KEY)

    @property
    def sums(self) -> tuple[str, ...]:
        return self._with(SUM)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the columns beside the key."""
        return tuple([column.name for column in self.columns if column.role != KEY])

    def _with(self, role: int) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns if column.role == role])


def key(name: str, meaning: str = "", sql_type: str = "INTEGER") -> Column:
    return Column(name, meaning, KEY, sql_type)


def text(name: str, meaning: str = "", role: int = KEY) -> Column:
    return Column(name, meaning, role, "TEXT")


def most(name: str, meaning: str = "") -> Column:
    return Column(name, meaning, MOST)


def last(name: str, meaning: str = "", sql_type: str = "INTEGER") -> Column:
    return Column(name, meaning, LAST, sql_type)


def unknown(name: str, meaning: str, sql_type: str = "TEXT", role: int = LAST) -> Column:
    """A column that may be NULL."""
    return Column(name, meaning, role, sql_type, is_optional=True)


def histogram(name: str, *owner: Column, count: str = "count") -> Table:
    return Table(
        name,
        "Durations (ns) or numbers: how many fell in each bucket. Bucket b < 16 is b; above, an"
        " octave has 16 buckets: from (16 + b % 16) << (b / 16 - 1) on.",
        (*owner, key("bucket"), Column(count)),
    )


STATEMENT_KEY = (key("statement_id"), key("path_id"))
