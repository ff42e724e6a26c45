"""Call sites: the first frame of a call path that is not a database helper.

A database helper is a function that runs the SQL that its callers pass: many programs have a
`db.query(sql)`, or one behind another. The SQL is its caller's, so the caller is shown and
ranked, and the helper is named beside it.

How to recognize one: one line of it runs different statements (the SQL is a variable there), and
each of its callers has its own statements. An ordinary function has a line for each statement, or
runs the same ones for every caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from queryprof.model import Aggregate, CallPath, Frame

HELPER_STATEMENTS = 4
"""A helper runs at least so many different statements ..."""

HELPER_CALLERS = 2
"""... for at least so many different calling functions ..."""

OWN_SHARE = 0.5
"""... and more than this share of them comes from one calling function alone ..."""

LINE_SHARE = 0.5
"""... and at least this share of them is run by one line."""

MODULE = "<module>"
"""The function of code that is in none; some is executed by other such code of its file."""

Function = tuple[str, str]
"""(file, qualified name)"""


Place = tuple[str, str, int] | None
"""File, function and line of a call site; None: unknown."""

NO_PLACE = ("", "", 0)
"""Where an unknown call site stands in an order."""


class CallSite(NamedTuple):
    """Where in the program a call came from; `frame` is None when nothing is known.

    Attributes:
        callers: the frames outwards of it, nearest first.
        helpers: the database helpers that were skipped, innermost first.
    """

    frame: Frame | None
    callers: tuple[Frame, ...] = ()
    helpers: tuple[Frame, ...] = ()


@dataclass(slots=True, eq=False)
class _Use:
    """A function as the call paths show it: what it runs, by line and by calling function.

    Attributes:
        callers: the functions that call it, each with what this function runs for it.
    """

    lines: dict[int, set[str]] = field(default_factory=dict)
    callers: dict[Function, _Use] = field(default_factory=dict)

    def add(self, frames: list[Frame], statements: set[str]) -> None:
        """Adds a call path that begins at this function."""
        use = self
        for frame, caller in pairwise(frames):
            use.lines.setdefault(frame.line, set()).update(statements)
            use = use.callers.setdefault(_function(caller), _Use())
        use.lines.setdefault(frames[-1].line, set()).update(statements)

    @property
    def statements(self) -> set[str]:
        lines = list(self.lines.values())
        return lines[0] if len(lines) == 1 else set().union(*lines)

    def behind(self, function: Function) -> list[tuple[Function, _Use]]:
        """Its callers, if it runs the SQL that they pass; else itself."""
        if self.runs_what_it_is_given and self.callers:
            return list(self.callers.items())
        return [(function, self)]

    @property
    def runs_what_it_is_given(self) -> bool:
        """Whether many statements come from one of its lines."""
        statements = len(self.statements)
        return (
            statements >= HELPER_STATEMENTS
            and max(map(len, self.lines.values())) >= LINE_SHARE * statements
        )


def find_helpers(aggregates: Iterable[Aggregate]) -> frozenset[Function]:
    """The program's database helpers, also those that call another helper."""
    paths: dict[int, tuple[CallPath, set[str]]] = {}  # by address: see Sites
    for aggregate in aggregates:
        path = aggregate.path
        if len(path) > 1 and not aggregate.statement.startswith("("):
            runs = paths.get(id(path))
            if runs is None:
                runs = paths[id(path)] = (path, set())
            runs[1].add(aggregate.statement)
    helpers: frozenset[Function] = frozenset()
    while True:
        uses = _uses(list(paths.values()), helpers)
        found = {function for function, use in uses.items() if _is_helper(use)}
        if not found:
            return helpers
        helpers |= found


def _uses(
    paths: list[tuple[CallPath, set[str]]], helpers: frozenset[Function]
) -> dict[Function, _Use]:
    """The innermost functions that are not known to be helpers, as their callers use them. Those
    that run too few statements to be one, or are called on one path alone, are left out.
    """
    starting: dict[Function, list[tuple[CallPath, set[str]]]] = {}
    for path, statements in paths:
        innermost = next(_without(path, helpers), path[-1])
        starting.setdefault(_function(innermost), []).append((path, statements))
    uses: dict[Function, _Use] = {}
    for function, known in starting.items():
        if len(known) < HELPER_CALLERS:
            continue
        if len(set().union(*[statements for _, statements in known])) < HELPER_STATEMENTS:
            continue
        for path, statements in known:
            frames = list(_without(path, helpers))
            if len(frames) > 1:  # else no frame would be left to show
                uses.setdefault(function, _Use()).add(frames, statements)
    return uses


def _without(path: CallPath, helpers: frozenset[Function]) -> Iterator[Frame]:
    """The frames of a path that are not helpers; of a recursive function, the innermost frame."""
    before: Function | None = None
    for frame in path:
        function = _function(frame)
        if function not in helpers and function != before:
            before = function
            yield frame


def _is_helper(use: _Use) -> bool:
    """Whether a function runs the SQL that its callers, or those behind them, pass."""
    if not use.runs_what_it_is_given:
        return False
    callers = list(use.callers.items())
    while not _bring_their_own(callers):
        behind = [further for function, caller in callers for further in caller.behind(function)]
        if behind == callers:
            return False
        callers = behind
    return True


def _bring_their_own(callers: list[tuple[Function, _Use]]) -> bool:
    """Whether most statements come from one calling function each."""
    if len({function for function, _ in callers}) < HELPER_CALLERS:
        return False
    users: dict[str, set[Function]] = {}
    for function, caller in callers:
        for statement in caller.statements:
            users.setdefault(statement, set()).add(function)
    own = [functions for functions in users.values() if len(functions) == 1]
    return len(own) > OWN_SHARE * len(users)


def call_site(path: CallPath, helpers: frozenset[Function]) -> CallSite:
    """The call site of a call path: helpers are skipped as long as a frame is left."""
    if not path:
        return CallSite(None)
    depth = _depth(path, helpers)
    frame, callers = path[depth], path[depth + 1 :]
    if frame.function == MODULE:  # code that the same line executes, as IPython's magics do
        callers = tuple(one for one in callers if one != frame)
    return CallSite(frame, callers, path[:depth])


def _depth(path: CallPath, helpers: frozenset[Function]) -> int:
    """Where in a call path its call site is."""
    depth = 0
    while depth + 1 < len(path) and _function(path[depth]) in helpers:
        depth += 1
    return depth


class Sites:
    """The call sites of a profile's call paths.

    What a call site is known by is computed once for each path. A profile's equal paths are mostly
    one object, whose address is looked up faster than its frames are compared; the paths that were
    looked up are kept.
    """

    def __init__(self, helpers: frozenset[Function]) -> None:
        self._helpers = helpers
        self._known: dict[int, tuple[CallPath, Place]] = {}
        self._sites: dict[int, tuple[CallPath, CallSite]] = {}

    def site(self, path: CallPath) -> CallSite:
        """The call site of a path."""
        known = self._sites.get(id(path))
        if known is None:
            known = self._sites[id(path)] = (path, call_site(path, self._helpers))
        return known[1]

    def place(self, path: CallPath) -> Place:
        """What the call site of a path is known by."""
        known = self._known.get(id(path))
        if known is None:
            place = place_of(path[_depth(path, self._helpers)]) if path else None
            known = self._known[id(path)] = (path, place)
        return known[1]


def place_of(frame: Frame | None) -> Place:
    """What a call site is known by."""
    return (frame.file, frame.function, frame.line) if frame else None


def _function(frame: Frame) -> Function:
    return frame.file, frame.function
