"""Find the loop that repeats a statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import eq

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.library_frames import LAZY
from queryprof.findings.groups import StatementGroup
from queryprof.findings.recorded import MAX_GROUPS, RecordedData
from queryprof.model import ENDLESS, CallPath, Frame

AS_OFTEN = 1.1
"""Two queries run once per call of a function if their counts differ by at most this factor."""

MAX_NEAR_QUERIES = 20
"""The most queries of a function to compare. This limits the time for thousands of statements."""

GroupAtDepth = tuple[StatementGroup, int]


@dataclass(frozen=True)
class RepeatingLoops(RecordedData):
    """A recorded program with the loops around its statements."""

    @cached_property
    def loop_cache(self) -> dict[tuple[str, str, int, str], Frame | None]:
        """The cache of loop_around()."""
        return {}

    @cached_property
    def innermost_loop_cache(self) -> dict[StatementGroup, CallSite | None]:
        """The cache of innermost_loop()."""
        return {}

    def innermost_loop(self, group: StatementGroup) -> CallSite | None:
        """Return the innermost loop on a group's call path that repeats the group's statement, or
        the line of a recursive call; None if unknown.
        """
        if group not in self.innermost_loop_cache:
            self.innermost_loop_cache[group] = self._find_innermost_loop(group)
        return self.innermost_loop_cache[group]

    def _find_innermost_loop(self, group: StatementGroup) -> CallSite | None:
        path = self.path_inside_request(group)
        innermost = None
        for depth in range(len(path)):
            loop = self.loop_around(group, depth)
            if loop == ENDLESS:
                return innermost  # the loop of a worker or server does not count
            site = CallSite(loop, group.path[depth + 1 :]) if loop else None
            if site and not self._runs_once_in_loop(group, depth):
                return site
            innermost = innermost or site
        if innermost:
            return innermost
        running = set()
        for depth, frame in enumerate(path):
            if (frame.file, frame.function) in running and not frame.function.endswith(">"):
                return CallSite(frame, group.path[depth + 1 :])
            running.add((frame.file, frame.function))
        return None

    def is_in_endless_loop(self, group: StatementGroup) -> bool:
        """Return whether the innermost loop on a group's call path is the endless loop of a worker
        or server.
        """
        loops = (
            self.loop_around(group, depth) for depth in range(len(self.path_inside_request(group)))
        )
        return next(filter(None, loops), None) == ENDLESS

    def loop_around(self, group: StatementGroup, depth: int) -> Frame | None:
        """Return the loop around a frame of a group's path; see LoopFinder."""
        frame = group.path[depth]
        called = (
            group.path[depth - 1].function.rpartition(".")[2]
            if depth
            else self.called_library_function(group)
        )
        key = (frame.file, frame.function, frame.line, called)
        if key not in self.loop_cache:
            self.loop_cache[key] = self.loop_at(frame, called)
        return self.loop_cache[key]

    def _runs_once_in_loop(self, group: StatementGroup, depth: int) -> bool:
        """Return whether a call of the function at this depth runs the group's query once, although
        the query is in a loop: another query of the function, outside any loop, runs as often. The
        query may fetch the items of a comprehension, or the loop may execute other statements.
        """
        runs = group.totals.statement_executions
        frame, callers = group.path[depth], group.path[depth + 1 :]
        near = self._groups_below.get((frame.file, frame.function, callers[:1]), ())
        return any(
            runs <= one.totals.statement_executions <= AS_OFTEN * runs
            for one, at in near[:MAX_NEAR_QUERIES]
            if one.path != group.path
            and all(map(eq, one.path[at + 1 :], callers))  # paths have a limited length
            and not any(self.loop_around(one, below) for below in range(at + 1))
            and not (self.library_note(one) or "").startswith(LAZY)
        )

    @cached_property
    def _groups_below(self) -> Mapping[tuple[str, str, CallPath], Sequence[GroupAtDepth]]:
        """The queries that each function leads to, with the function's depth on their call path.
        The key is the file, the function and its caller.
        """
        found: dict[tuple[str, str, CallPath], list[GroupAtDepth]] = defaultdict(list)
        for group in self.all_groups[:MAX_GROUPS]:
            if group.reads:
                for depth, frame in enumerate(group.path):
                    caller = group.path[depth + 1 : depth + 2]
                    found[frame.file, frame.function, caller].append((group, depth))
        return found
