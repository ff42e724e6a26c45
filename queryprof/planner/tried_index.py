"""Indexes to try on the empty copy of a schema, and the terms of an index that a plan uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_TRIED = 16
ANYCASE = " COLLATE NOCASE"

ColumnsByTable = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TriedTerm:
    """A term of an index: a column, or an expression as SQL."""

    column: str
    is_descending: bool = False
    is_expression: bool = False


@dataclass(frozen=True, slots=True)
class TriedIndex:
    table: str
    terms: tuple[TriedTerm, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(term.column for term in self.terms)

    @property
    def name(self) -> str:
        words = (self.table, *(term.column for term in self.terms))
        return re.sub(r"\W+", "_", "_".join(words).replace(" COLLATE ", "_")).strip("_")[:56]

    def compared_term_count(self, listed: str) -> int:
        """Return how many of the index's leading terms a plan step compares. The last comparison
        may be a range. `listed` is the step's list of comparisons.
        """
        width = 0
        for term in self.terms:
            if not _is_listed(term, listed, "[=<>]"):
                break
            width += 1
        return width

    def is_searched_by_range(self, listed: str) -> bool:
        """Return whether the last compared term is compared by a range."""
        width = self.compared_term_count(listed)
        return bool(width) and not _is_listed(self.terms[width - 1], listed, "=")

    def sql(self, name: str, quote: Callable[[str], str]) -> str:
        listed = [
            (one.column if one.is_expression else quote(one.column)) + " DESC" * one.is_descending
            for one in self.terms
        ]
        return f"CREATE INDEX {name} ON {quote(self.table)} ({', '.join(listed)})"


def is_prefix_of(index: TriedIndex, other: TriedIndex) -> bool:
    """Return whether `other` begins with the terms of `index`, and so can replace it."""
    width = len(index.terms)
    same_table = index.table == other.table
    return same_table and len(other.terms) > width and other.terms[:width] == index.terms


def as_used(
    indexes: Sequence[TriedIndex],
    used: Mapping[int, str],
    is_sorted: bool,
    taken: Sequence[TriedIndex],
) -> tuple[TriedIndex, ...]:
    """Return the indexes that a plan uses, without their unused terms. The terms of `taken`, and
    all terms of an index that avoids a sort, count as used.
    """
    found: dict[TriedIndex, None] = {}
    for number, listed in used.items():
        index = indexes[number]
        known = [len(one.terms) for one in taken if index.terms[: len(one.terms)] == one.terms]
        width = len(index.terms) if is_sorted else max([index.compared_term_count(listed), *known])
        if width:
            found[TriedIndex(index.table, index.terms[:width])] = None
    return tuple(found)


def plain_indexes(columns: ColumnsByTable) -> list[TriedIndex]:
    """Return an index on each column."""
    return [
        TriedIndex(table, (TriedTerm(name),)) for table, names in columns.items() for name in names
    ]


def wider_indexes(
    taken: Sequence[TriedIndex], columns: ColumnsByTable, sorts: bool
) -> Iterator[TriedIndex]:
    """Yield the indexes, and each index with one more term. For a table without an index, yield
    indexes with one term. The order matters: the planner uses the last of equally good indexes.
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


def ignoring_case(
    taken: Iterable[TriedIndex],
    columns: ColumnsByTable,
    quote: Callable[[str], str],
) -> list[TriedIndex]:
    """Return the indexes, and each prefix of an index, with an additional case-insensitive column.
    The statement may sort or compare by such a column, after the columns compared for equality.
    """
    return [
        TriedIndex(index.table, (*index.terms[:width], case_insensitive_term(name, quote)))
        for index in taken
        for width in range(1, len(index.terms) + 1)
        for name in columns.get(index.table, ())
        if name not in index.columns[:width]
    ][:MAX_TRIED]


def case_insensitive_term(name: str, quote: Callable[[str], str]) -> TriedTerm:
    return TriedTerm(f"{quote(name)}{ANYCASE}", is_expression=True)


def _is_listed(term: TriedTerm, listed: str, operators: str) -> bool:
    """Return whether a plan step compares a term with one of these operators."""
    known = "<expr>" if term.is_expression else term.column
    return bool(re.search(rf"(?<!\w){re.escape(known)}{operators}", listed))
