"""Lines of the program in which a library executes several statements: for which of them it is
called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.libraries import AUTOFLUSH, is_own
from queryprof.analysis.findings.recorded import Recorded
from queryprof.model import Frame

AS_OFTEN = 1.2
"""Statements of a line run about as often up to so many times."""

IMPORTANCE = {"INSERT": 3, "REPLACE": 3, "UPDATE": 2, "DELETE": 2, "SELECT": 1, "WITH": 1}
"""By verb, of what a library executes in one line; what begins and ends transactions has none."""

MOST_OF_OWN = 1.1
"""Statements beside others in a library's calls, for each that it executes for itself: some calls
are timed alone."""


@dataclass(frozen=True)
class SharedLines(Recorded):
    """What was recorded, with the lines that several statements share."""

    @cached_property
    def _callers(self) -> Mapping[object, Group]:
        """By place the statement for which the program calls a library there: what runs most often,
        and of those that run about as often what is written, unless an autoflush writes it
        before a query.
        """
        found: dict[object, Group] = {}
        for group in self.all_groups:
            place = place_of(group.site.frame)
            if self._shares_line(group) and group.line_ns is not None:
                first = found.setdefault(place, group)
                found[place] = group if self._comes_before(group, first) else first
        return found

    def _comes_before(self, group: Group, first: Group) -> bool:
        """Whether a statement is what a line's call is made for, and not the first one."""
        one, other = (each.totals.statement_executions for each in (group, first))
        least, most = sorted((self._importance(group), self._importance(first)))
        if least > 0 and max(one, other) > AS_OFTEN * min(one, other):
            return one > other
        if least < most:
            return self._importance(group) == most
        return group.cost_ns > first.cost_ns

    def _importance(self, group: Group) -> int:
        """Of a statement among those that a library executes in one line of the program."""
        if self.is_flushed(group):
            return -1
        return IMPORTANCE.get(group.verb, 0)

    def is_flushed(self, group: Group) -> bool:
        """Whether an object mapper writes it before a query, so that the query finds it."""
        return (group.statement, group.site.frame) in self._flushed

    @cached_property
    def _flushed(self) -> set[tuple[str, Frame | None]]:
        return {
            (statement, frame)
            for statement, stacks in self._stacks.items()
            for stack in stacks
            if any(frame.function == AUTOFLUSH for frame in stack)
            for frame in stack
        }

    def flushed_before(self, group: Group) -> bool:
        """Whether an object mapper writes something before each execution of a query."""
        place = place_of(group.site.frame)
        return any(
            place_of(one.site.frame) == place and self.is_flushed(one)
            for one in self.near(group.function)
            if one.writes
        )

    def is_inside(self, group: Group) -> bool:
        """Whether a library executes it in a call that the program makes for another statement."""
        if not self._shares_line(group):
            return False
        first = self._callers.get(place_of(group.site.frame))
        return first is not None and first is not group

    def _shares_line(self, group: Group) -> bool:
        """Whether a call of a library executes others with it, which it does not for
        itself alone.
        """
        return group.shares_line and place_of(group.site.frame) not in self._beside_own

    @cached_property
    def _beside_own(self) -> set[object]:
        """The places where all that libraries' calls execute with other statements is their own:
        Django's list of queries is made by a query for each.
        """
        own: dict[object, int] = defaultdict(int)
        others: dict[object, float] = defaultdict(float)
        for group in self.all_groups:
            place, runs = place_of(group.site.frame), group.totals.statement_executions
            if any(map(is_own, self._stacks.get(group.statement, ()))):
                own[place] += runs
            elif group.others_each:
                others[place] += group.others_each * runs
        return {place for place, runs in others.items() if runs <= MOST_OF_OWN * own[place]}
