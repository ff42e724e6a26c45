"""Find call sites: the first frame of a call path that is not a database helper.

A database helper is a function that runs SQL from its callers. Many programs have a
`db.query(sql)`, or several layers of them. The report ranks and shows the helper's caller, and
names the helper as a detail.

A helper has two signs. First, one of its lines runs different statements, because the SQL is a
variable. Second, each of its callers has its own statements. An ordinary function has one line per
statement, or runs the same statements for every caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from queryprof.model import Aggregate, CallPath, Frame

HELPER_STATEMENTS = 4
"""A function that runs fewer different statements is not a helper."""

HELPER_CALLERS = 2
"""A function with fewer calling functions is not a helper."""

OWN_SHARE = 0.5
"""In a helper, more than this share of the statements each come from only one calling function."""

LINE_SHARE = 0.5
"""In a helper, a single line runs at least this share of the statements."""

MODULE = "<module>"
"""The function name of code outside any function. Such code can execute other module-level code in
the same file.
"""

Function = tuple[str, str]
"""The file and qualified name of a function."""


Place = tuple[str, str, int] | None
"""The file, function and line of a call site; None if unknown."""

NO_PLACE = ("", "", 0)
"""The sort key of an unknown call site."""


class CallSite(NamedTuple):
    """The line of the program that made a database call.

    Attributes:
        frame: the frame of this line; None if unknown.
        callers: the callers of `frame`, innermost first.
        helpers: the skipped frames of database helpers, innermost first.
    """

    frame: Frame | None
    callers: tuple[Frame, ...] = ()
    helpers: tuple[Frame, ...] = ()


@dataclass(slots=True, eq=False)
class _FunctionUse:
    """The statements that a function runs, by line and by caller.

    Attributes:
        callers: the calling functions, each with the statements that this function runs for it.
    """

    lines: dict[int, set[str]] = field(default_factory=dict)
    callers: dict[Function, _FunctionUse] = field(default_factory=dict)

    def add(self, frames: list[Frame], statements: set[str]) -> None:
        """Add a call path that begins at this function."""
        use = self
        for frame, caller in pairwise(frames):
            use.lines.setdefault(frame.line, set()).update(statements)
            use = use.callers.setdefault(_function_of_frame(caller), _FunctionUse())
        use.lines.setdefault(frames[-1].line, set()).update(statements)

    @property
    def statements(self) -> set[str]:
        lines = list(self.lines.values())
        return lines[0] if len(lines) == 1 else set().union(*lines)

    def callers_or_self(self, function: Function) -> list[tuple[Function, _FunctionUse]]:
        """Return the callers of this function if it runs their SQL, else the function itself."""
        if self.runs_many_statements and self.callers:
            return list(self.callers.items())
        return [(function, self)]

    @property
    def runs_many_statements(self) -> bool:
        """Return whether one of the function's lines runs many statements."""
        statements = len(self.statements)
        return (
            statements >= HELPER_STATEMENTS
            and max(map(len, self.lines.values())) >= LINE_SHARE * statements
        )


def find_helpers(aggregates: Iterable[Aggregate]) -> frozenset[Function]:
    """Return the program's database helpers, including helpers of helpers."""
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
        uses = _function_uses(list(paths.values()), helpers)
        found = {function for function, use in uses.items() if _is_helper(use)}
        if not found:
            return helpers
        helpers |= found


def _function_uses(
    paths: list[tuple[CallPath, set[str]]], helpers: frozenset[Function]
) -> dict[Function, _FunctionUse]:
    """Return the innermost function of each path outside the known helpers, with the statements
    that the function runs for its callers. Functions with too few statements or fewer than
    HELPER_CALLERS paths are skipped.
    """
    starting: dict[Function, list[tuple[CallPath, set[str]]]] = {}
    for path, statements in paths:
        innermost = next(_without_helpers(path, helpers), path[-1])
        starting.setdefault(_function_of_frame(innermost), []).append((path, statements))
    uses: dict[Function, _FunctionUse] = {}
    for function, known in starting.items():
        if len(known) < HELPER_CALLERS:
            continue
        if len(set().union(*[statements for _, statements in known])) < HELPER_STATEMENTS:
            continue
        for path, statements in known:
            frames = list(_without_helpers(path, helpers))
            if len(frames) > 1:  # a helper needs a caller to show
                uses.setdefault(function, _FunctionUse()).add(frames, statements)
    return uses


def _without_helpers(path: CallPath, helpers: frozenset[Function]) -> Iterator[Frame]:
    """Return the frames of a path that are not helpers. A recursive function keeps its innermost
    frame.
    """
    before: Function | None = None
    for frame in path:
        function = _function_of_frame(frame)
        if function not in helpers and function != before:
            before = function
            yield frame


def _is_helper(use: _FunctionUse) -> bool:
    """Return whether a function runs the SQL of its direct or indirect callers."""
    if not use.runs_many_statements:
        return False
    callers = list(use.callers.items())
    while not _have_own_statements(callers):
        behind = [
            further for function, caller in callers for further in caller.callers_or_self(function)
        ]
        if behind == callers:
            return False
        callers = behind
    return True


def _have_own_statements(callers: list[tuple[Function, _FunctionUse]]) -> bool:
    """Return whether most statements each come from only one calling function."""
    if len({function for function, _ in callers}) < HELPER_CALLERS:
        return False
    users: dict[str, set[Function]] = {}
    for function, caller in callers:
        for statement in caller.statements:
            users.setdefault(statement, set()).add(function)
    own = [functions for functions in users.values() if len(functions) == 1]
    return len(own) > OWN_SHARE * len(users)


def call_site(path: CallPath, helpers: frozenset[Function]) -> CallSite:
    """Return the call site of a call path. Helpers are skipped, except for the outermost frame."""
    if not path:
        return CallSite(None)
    depth = _call_site_index(path, helpers)
    frame, callers = path[depth], path[depth + 1 :]
    if frame.function == MODULE:  # the same line executes further code, as IPython's magics do
        callers = tuple(one for one in callers if one != frame)
    return CallSite(frame, callers, path[:depth])


def _call_site_index(path: CallPath, helpers: frozenset[Function]) -> int:
    """Return the index of the call site in a call path."""
    depth = 0
    while depth + 1 < len(path) and _function_of_frame(path[depth]) in helpers:
        depth += 1
    return depth


class Sites:
    """The call sites of a profile's call paths.

    The key of a call site is computed once per path. Equal paths in a profile are usually the same
    object, and looking up an address is faster than comparing frames. Sites keeps the paths alive,
    so that no address is reused.
    """

    def __init__(self, helpers: frozenset[Function]) -> None:
        self._helpers = helpers
        self._known: dict[int, tuple[CallPath, Place]] = {}
        self._sites: dict[int, tuple[CallPath, CallSite]] = {}

    def site(self, path: CallPath) -> CallSite:
        """Return the call site of a path."""
        known = self._sites.get(id(path))
        if known is None:
            known = self._sites[id(path)] = (path, call_site(path, self._helpers))
        return known[1]

    def place(self, path: CallPath) -> Place:
        """Return the key of a path's call site."""
        known = self._known.get(id(path))
        if known is None:
            place = place_of(path[_call_site_index(path, self._helpers)]) if path else None
            known = self._known[id(path)] = (path, place)
        return known[1]


def place_of(frame: Frame | None) -> Place:
    """Return the key of a call site."""
    return (frame.file, frame.function, frame.line) if frame else None


def _function_of_frame(frame: Frame) -> Function:
    return frame.file, frame.function
