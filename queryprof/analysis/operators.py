"""The operators of statements' plans, in the order of each plan, where a database measured them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryprof.model import Operator

Operators = tuple[tuple[Operator, ...], ...]
"""Of the plans of one statement, the most executed first: each operator comes before those that it
reads from."""


def operators_by_statement(operators: Iterable[Operator]) -> Mapping[str, Operators]:
    """The operators of each statement."""
    found: dict[str, dict[int, list[Operator]]] = {}
    for one in (one for one in operators if one.executions > 0):
        found.setdefault(one.statement, {}).setdefault(one.plan, []).append(one)
    return {
        statement: tuple(
            tuple(sorted(plan, key=lambda one: _order(one.place)))
            for plan in sorted(plans.values(), key=lambda plan: (-plan[0].executions, plan[0].plan))
        )
        for statement, plans in found.items()
    }


def _order(place: str) -> tuple[tuple[int, str], ...]:
    """The numbers of a place as they count: of equal length, text is in their order."""
    return tuple((len(number), number) for number in place.split("."))
