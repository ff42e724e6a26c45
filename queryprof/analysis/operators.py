"""The operators of statements' plans, in the order of the plan, where a database measured them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryprof.model import Operator

Operators = tuple[Operator, ...]
"""Of one statement, each before those that it reads from."""


def operators_by_statement(operators: Iterable[Operator]) -> Mapping[str, Operators]:
    """The operators of each statement. Where it had several plans, those of one place follow each
    other, the most executed first.
    """
    found: dict[str, list[Operator]] = {}
    for one in (one for one in operators if one.executions > 0):
        found.setdefault(one.statement, []).append(one)
    return {
        statement: tuple(sorted(some, key=lambda one: (_order(one.place), -one.executions)))
        for statement, some in found.items()
    }


def _order(place: str) -> tuple[tuple[int, str], ...]:
    """The numbers of a place as they count: of equal length, text is in their order."""
    return tuple((len(number), number) for number in place.split("."))
