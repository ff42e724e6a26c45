"""The schema of a database, as far as findings need it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Index:
    """An index; an expression among its columns is "(expression)"."""

    name: str
    table: str
    columns: tuple[str, ...]
    is_unique: bool
    is_partial: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """The indexes of a database, and whether ANALYZE has filled statistics."""

    file: str
    indexes: tuple[Index, ...]
    has_statistics: bool
