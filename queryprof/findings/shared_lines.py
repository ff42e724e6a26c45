"""Find the main statement of a line in which a library executes several statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.library_frames import COLUMN, LAZY, MANY
from queryprof.findings.groups import StatementGroup
from queryprof.findings.libraries import AUTOFLUSH
from queryprof.findings.repeating_loops import RepeatingLoops
from queryprof.model import Frame
from queryprof.sql.tokens import tokens_of

AS_OFTEN = 1.2
"""Statements of a line run equally often if their counts differ by at most this factor."""

IMPORTANCE = {"INSERT": 3, "REPLACE": 3, "UPDATE": 2, "DELETE": 2, "SELECT": 1, "WITH": 1}
"""The importance of statements that a library executes in one line, by first word. Statements that
begin and end transactions have none.
"""

MAX_OTHERS_PER_OWN = 1.1
"""If a line executes at most this many further statements per execution of the library's own
statements, all further statements count as the library's own. The limit is above 1, because some
calls are timed separately.
"""


@dataclass(frozen=True)
class SharedLines(RepeatingLoops):
    """The recorded data, with lines that several statements share."""

    @cached_property
    def _main_statements_by_line(self) -> Mapping[object, StatementGroup]:
        """The main statement of each line that calls a library, by line. This is the statement
        that runs most often. Among equally frequent statements it is a write, unless the write is
        an autoflush before a query.
        """
        found: dict[object, StatementGroup] = {}
        for group in self.all_groups:
            place = place_of(group.site.frame)
            is_own = group.statement in self.report.own_statements
            if self._shares_line(group) and group.line_ns is not None and not is_own:
                first = found.setdefault(place, group)
                found[place] = group if self._is_more_important(group, first) else first
        return found

    def _is_more_important(self, group: StatementGroup, first: StatementGroup) -> bool:
        """Return whether the line's call is made for this statement rather than for `first`."""
        one, other = (each.totals.statement_executions for each in (group, first))
        least, most = sorted((self._statement_rank(group), self._statement_rank(first)))
        if least > 0 and max(one, other) > AS_OFTEN * min(one, other):
            return one > other
        if least < most:
            return self._statement_rank(group) == most
        return group.steady_ns > first.steady_ns

    def _statement_rank(self, group: StatementGroup) -> int:
        """Return a statement's importance among the statements that a library executes in one
        line.
        """
        if self.is_orm_flush(group.statement, group.site.frame):
            return -1
        return IMPORTANCE.get(group.verb, 0)

    def is_orm_flush(self, statement: str, frame: Frame | None) -> bool:
        """Return whether an ORM executes a write in this line before a query, so that the query
        finds the new rows.
        """
        return (statement, frame) in self._orm_flushes

    @cached_property
    def _orm_flushes(self) -> set[tuple[str, Frame | None]]:
        return {
            (statement, frame)
            for statement, stacks in self._stacks.items()
            for stack in stacks
            if any(frame.function == AUTOFLUSH for frame in stack)
            for frame in stack
        }

    def follows_unneeded_flush(self, group: StatementGroup) -> bool:
        """Return whether an ORM writes to tables before a query that does not read these tables."""
        place = place_of(group.site.frame)
        written = {
            one.clauses.changed
            for one in self.groups_of_function(group.function)
            if one.writes and place_of(one.site.frame) == place
            if self.is_orm_flush(one.statement, one.site.frame)
        }
        read = {token.text.strip('"`') for token in tokens_of(group.statement)}
        return bool(written) and not written & read

    def belongs_to_other_call(self, group: StatementGroup) -> bool:
        """Return whether a library executes the group's statement in a call that the program makes
        for another statement. A lazy load that runs more often does not belong to that call: a
        template runs many lazy loads, and few of them may be timed.
        """
        if not self._shares_line(group):
            return False
        first = self._main_statements_by_line.get(place_of(group.site.frame))
        if first is None or first is group:
            return False
        is_lazy = (self.library_note(group) or "").startswith(LAZY)
        return not (is_lazy and self._is_more_important(group, first))

    def other_loaded_attributes(self, group: StatementGroup) -> tuple[str, ...]:
        """Return the other attributes that an ORM loads in the line of a lazy load, about as often
        as the load's own attribute or more often. The line's time includes these loads.
        """
        notes = {self.library_note(one) or "" for one in self.other_reads_of_line(group)}
        lazy = (one.partition(" in ")[0] for one in notes if one.startswith(LAZY))
        own = (self.library_note(group) or "").partition(" in ")[0]
        names = {
            one.removeprefix(LAZY).removeprefix(MANY).removeprefix(COLUMN)
            for one in lazy
            if one != own
        }
        return tuple(sorted(names))

    def other_reads_of_line(self, group: StatementGroup) -> list[StatementGroup]:
        """Return the other queries that a library executes in the group's line, about as often as
        the group's query or more often. The line's time includes them.
        """
        if not self._shares_line(group):
            return []
        place, runs = place_of(group.site.frame), group.totals.statement_executions
        return [
            one
            for one in self.groups_of_function(group.function)
            if one.reads
            and one.statement != group.statement
            and place_of(one.site.frame) == place
            and AS_OFTEN * one.totals.statement_executions >= runs
        ]

    def _shares_line(self, group: StatementGroup) -> bool:
        """Return whether the group's line also executes other statements, not counting the
        statements that a library executes for itself.
        """
        return (
            group.shares_line
            and place_of(group.site.frame) not in self._places_with_library_statements
        )

    @cached_property
    def _places_with_library_statements(self) -> set[object]:
        """The lines where a library's calls execute one statement of the program, and otherwise
        only the library's own statements.
        """
        own: dict[object, int] = defaultdict(int)
        others: dict[object, float] = defaultdict(float)
        for group in self.all_groups:
            place, runs = place_of(group.site.frame), group.totals.statement_executions
            if group.statement in self.report.own_statements:
                own[place] += runs
            elif group.other_statements_per_pass:
                others[place] += group.other_statements_per_pass * runs
        return {place for place, runs in others.items() if runs <= MAX_OTHERS_PER_OWN * own[place]}
