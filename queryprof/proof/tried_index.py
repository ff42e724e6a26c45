"""An index that is tried on the empty copy of a schema, and what of it a plan uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


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
        return re.sub(r"\W+", "_", "_".join(words)).strip("_")[:56]

    def compared(self, listed: str) -> int:
        """How many of its first terms a step of a plan lists as compared; the last may be by range."""
        width = 0
        for term in self.terms:
            known = "<expr>" if term.is_expression else term.column
            if not re.search(rf"(?<!\w){re.escape(known)}[=<>]", listed):
                break
            width += 1
        return width

    def is_searched_by_range(self, listed: str) -> bool:
        """Whether the last of its terms that is compared is not compared for equality."""
        width = self.compared(listed)
        return bool(width) and f"{self.terms[width - 1].column}=" not in listed

    def sql(self, name: str, quote: Callable[[str], str]) -> str:
        listed = [
            (one.column if one.is_expression else quote(one.column)) + " DESC" * one.is_descending
            for one in self.terms
        ]
        return f"CREATE INDEX {name} ON {quote(self.table)} ({', '.join(listed)})"
