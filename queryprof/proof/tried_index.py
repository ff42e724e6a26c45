"""An index that is tried on the empty copy of a schema, and what of it a plan uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_TRIED = 16
ANYCASE = " COLLATE NOCASE"


@dataclass(frozen=True, slots=True)
class TriedTerm:
    """A column, or an expression as SQL."""

    column: str
    is_descending: bool = False
    is_expression: bool = False


@dataclass(frozen=True, slots=True)
class TriedIndex:
    """One that is tried."""

    table: str
    terms: tuple[TriedTerm, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(term.column for term in self.terms)

    @property
    def name(self) -> str:
        words = (self.table, *(term.column for term in self.terms))
        return re.sub(r"\W+", "_", "_".join(words).replace(" COLLATE ", "_")).strip("_")[:56]

    def compared(self, listed: str) -> int:
        """How many of its first terms a step of a plan lists as compared; the last may be
        by range.
        """
        width = 0
        for term in self.terms:
            if not _is_listed(term, listed, "[=<>]"):
                break
            width += 1
        return width

    def is_searched_by_range(self, listed: str) -> bool:
        """Whether the last of its terms that is compared is not compared for equality."""
        width = self.compared(listed)
        return bool(width) and not _is_listed(self.terms[width - 1], listed, "=")

    def sql(self, name: str, quote: Callable[[str], str]) -> str:
        listed = [
            (one.column if one.is_expression else quote(one.column)) + " DESC" * one.is_descending
            for one in self.terms
        ]
        return f"CREATE INDEX {name} ON {quote(self.table)} ({', '.join(listed)})"


def begins(index: TriedIndex, other: TriedIndex) -> bool:
    """Whether another index has its terms first: that serves what it does."""
    width = len(index.terms)
    same_table = index.table == other.table
    return same_table and len(other.terms) > width and other.terms[:width] == index.terms


def as_used(
    indexes: Sequence[TriedIndex],
    used: Mapping[int, str],
    is_sorted: bool,
    taken: Sequence[TriedIndex],
) -> tuple[TriedIndex, ...]:
    """The indexes in a plan, without the terms that it has no use for: those of `taken`
    have one.
    """
    found: dict[TriedIndex, None] = {}
    for number, listed in used.items():
        index = indexes[number]
        known = [len(one.terms) for one in taken if index.terms[: len(one.terms)] == one.terms]
        width = len(index.terms) if is_sorted else max([index.compared(listed), *known])
        if width:
            found[TriedIndex(index.table, index.terms[:width])] = None
    return tuple(found)


def wider_ones(
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


def anycase_after(
    taken: Iterable[TriedIndex],
    columns: Mapping[str, tuple[str, ...]],
    quote: Callable[[str], str],
) -> list[TriedIndex]:
    """The indexes, or what they begin with, and one more column without regard to case: it is
    sorted by, or compared, behind what is compared for equality.
    """
    return [
        TriedIndex(index.table, (*index.terms[:width], anycase(name, quote)))
        for index in taken
        for width in range(1, len(index.terms) + 1)
        for name in columns.get(index.table, ())
        if name not in index.columns[:width]
    ][:MOST_TRIED]


def anycase(name: str, quote: Callable[[str], str]) -> TriedTerm:
    return TriedTerm(f"{quote(name)}{ANYCASE}", is_expression=True)


def _is_listed(term: TriedTerm, listed: str, operators: str) -> bool:
    """Whether a step of a plan lists a term as compared so."""
    known = "<expr>" if term.is_expression else term.column
    return bool(re.search(rf"(?<!\w){re.escape(known)}{operators}", listed))
