"""Call sites: the first frame of a call path that is not a database helper.

A database helper is a function through which most of the program's different statements go
(many programs have a `db.query()`). It is nobody's bottleneck, so its caller is shown and ranked
and the helper is named beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queryprof.model import Aggregate, CallPath, Frame

HELPER_STATEMENTS = 4
"""A helper runs at least so many different statements ..."""

HELPER_SHARE = 0.5
"""... and more than this share of all that the program runs ..."""

HELPER_CALLERS = 2
"""... for at least so many different calling functions."""

Function = tuple[str, str]
"""(file, qualified name)"""


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where in the program a call came from; `frame` is None when nothing is known.

    Attributes:
        callers: the frames outwards of it, nearest first.
        helpers: the database helpers that were seen through, innermost first.
    """

    frame: Frame | None
    callers: tuple[Frame, ...] = ()
    helpers: tuple[Frame, ...] = ()


def find_helpers(aggregates: Iterable[Aggregate]) -> frozenset[Function]:
    """The program's database helpers, also those that call another helper."""
    paths: dict[CallPath, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.path and not aggregate.statement.startswith("("):
            paths.setdefault(aggregate.path, set()).add(aggregate.statement)
    everything = set().union(*paths.values()) if paths else set()
    helpers: set[Function] = set()
    while True:
        statements: dict[Function, set[str]] = {}
        callers: dict[Function, set[Function]] = {}
        for path, texts in paths.items():
            rest = [frame for frame in path if _function(frame) not in helpers]
            if len(rest) < 2:
                continue  # seen through, there would be nothing left to show
            function = _function(rest[0])
            statements.setdefault(function, set()).update(texts)
            callers.setdefault(function, set()).add(_function(rest[1]))
        found = {
            function
            for function, texts in statements.items()
            if len(texts) >= HELPER_STATEMENTS
            and len(texts) > HELPER_SHARE * len(everything)
            and len(callers[function]) >= HELPER_CALLERS
        }
        if not found:
            return frozenset(helpers)
        helpers |= found


def call_site(path: CallPath, helpers: frozenset[Function]) -> CallSite:
    """The call site of a call path: seen through helpers as far as there is somebody behind."""
    if not path:
        return CallSite(None)
    depth = 0
    while depth + 1 < len(path) and _function(path[depth]) in helpers:
        depth += 1
    return CallSite(path[depth], path[depth + 1 :], path[:depth])


def _function(frame: Frame) -> Function:
    return frame.file, frame.function
