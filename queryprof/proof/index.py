"""A candidate index: a table and the terms of the index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import apsw


def quote_name(name: str) -> str:
    """Quote a name for SQL if necessary."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in apsw.keywords:
        return name
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """A column, or an expression as SQL, with its properties in an index.

    Attributes:
        collation: "" for the column's own collation.
    """

    column: str
    collation: str = ""
    is_descending: bool = False
    is_expression: bool = False

    @property
    def sql(self) -> str:
        return (
            (self.column if self.is_expression else quote_name(self.column))
            + (f" COLLATE {quote_name(self.collation)}" if self.collation else "")
            + (" DESC" if self.is_descending else "")
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index on a table. The index name does not matter for equality."""

    table: str
    terms: tuple[IndexTerm, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(term.sql for term in self.terms)

    @property
    def name(self) -> str:
        """A name with the table and the columns, at most 60 characters long."""
        words = [self.table, *(term.column for term in self.terms)]
        return re.sub(r"\W+", "_", "_".join(words)).strip("_").lower()[:56] + "_idx"

    def sql(self, name: str) -> str:
        """Return the statement that creates the index."""
        columns = ", ".join(self.columns)
        return f"CREATE INDEX {quote_name(name)} ON {quote_name(self.table)} ({columns})"

    def is_prefix_of(self, other: Candidate) -> bool:
        """Return whether `other` begins with the terms of this index, or is equal."""
        return self.table == other.table and other.terms[: len(self.terms)] == self.terms

    def without_last_column(self) -> Candidate:
        """Return the index without its last column."""
        return replace(self, terms=self.terms[:-1])


def has_index(plan: Iterable[str], index: str) -> bool:
    """Return whether a plan uses the index with this name."""
    return bool(index) and any(f" {index} " in f"{step} " for step in plan)
