"""The schema of a database, as far as findings need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Index:
    """An index. In `columns`, "(expression)" stands for an expression.

    Attributes:
        order: for each column, its collation and whether it is descending.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    is_unique: bool
    is_partial: bool
    order: tuple[tuple[str, bool], ...] = ()

    def is_prefix_of(self, other: Index) -> bool:
        """Return whether another index starts with the same columns, in the same or the opposite
        sort direction.
        """
        width = len(self.columns)
        same = [one == two for (_, one), (_, two) in zip(self.order, other.order, strict=False)]
        return (
            other.columns[:width] == self.columns
            and "(expression)" not in self.columns
            and [name for name, _ in other.order[:width]] == [name for name, _ in self.order]
            and len({*same}) <= 1
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """A database's schema and statistics.

    Attributes:
        created: the SQL of all tables, views, indexes and triggers, in the order of creation.
        statistics: the rows (table, index, figures) of sqlite_stat1, which ANALYZE fills.
        rows: current row counts of analyzed tables, as far as known.
    """

    file: str
    indexes: tuple[Index, ...]
    created: tuple[str, ...] = ()
    statistics: tuple[tuple[str | None, str | None, str | None], ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_statistics(self) -> bool:
        return bool(self.statistics)

    @property
    def analyzed_rows(self) -> Mapping[str, int]:
        """The row count of each table at the last ANALYZE."""
        found: dict[str, int] = {}
        for table, _, figures in self.statistics:
            first = (figures or "").partition(" ")[0]
            if table and first.isdecimal() and len(first) < MAX_DIGITS:
                found[table] = max(found.get(table, 0), int(first))
        return found
