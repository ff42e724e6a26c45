"""The recorded data of a program, prepared for the rules: groups, times, loops, libraries."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from queryprof.analysis.call_sites import CallSite, Function, place_of
from queryprof.analysis.handoffs import handoff_waits_by_line
from queryprof.analysis.library_frames import (
    is_handed,
    is_own,
    loads_lazily,
    outside_of_request,
    package_of,
)
from queryprof.analysis.report import Report
from queryprof.analysis.units import average, counted
from queryprof.findings.finding import (
    MIN_NS,
    MIN_SHARE,
)
from queryprof.findings.groups import Group, by_function, groups_of
from queryprof.findings.handing import hand_over
from queryprof.findings.libraries import NAMING, PRELOADS, SEVERAL, without_reader
from queryprof.findings.lines_inside import take_from_callers
from queryprof.findings.selectivity import has_enough_rows
from queryprof.findings.skew import note_skew
from queryprof.findings.source_lines import (
    NO_LINES,
    NO_TASKS,
    Lines,
    LoopFinder,
    TaskFinder,
)
from queryprof.findings.whole import whole_of
from queryprof.model import ENDLESS, CallPath, Frame, Profile, Schema
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.planner.facts import NO_PLANNER, Planner, Served
from queryprof.sql.clauses import first_table

MAX_GROUPS = 1000
MAX_NEAR = 200
HEAVY_SHARE = 0.30
"""A few transactions are reported if they take at least this share of the time."""

STALE_ROWS, STALE_TIMES = 1000, 10
"""Statistics are stale if a table has at least this many rows, and this many times the rows that
ANALYZE found.
"""


@dataclass(frozen=True)
class Recorded:
    """The recorded data that findings are made from.

    Attributes:
        loop_at, makes_tasks, lines: look up loops, tasks and lines in the program's source.
        schemas: the schemas by database file, as far as readable.
        planner: asks SQLite's planner.
        server: what a PostgreSQL server reports about the statements.
    """

    report: Report
    loop_at: LoopFinder
    schemas: Mapping[str, Schema]
    planner: Planner = NO_PLANNER
    makes_tasks: TaskFinder = NO_TASKS
    server: ServerFacts = NO_SERVER
    lines: Lines = NO_LINES

    def served(self, group: Group) -> Served | None:
        """Return the planner's facts about a group's statement, such as a helpful index; None if
        unknown.
        """
        served = self.planner.served(group.statement, group.plans)
        sorts_only = served and served.code and served.sorts_less and not served.searches
        if (
            served
            and sorts_only
            and group.clauses.limits
            and has_enough_rows(group, served) is False
        ):
            return replace(
                served.filtering or Served(served.plan),
                is_aggregate=served.is_aggregate,
                row_steps=served.row_steps,
                other_version=served.other_version,
            )
        return served

    @property
    def profile(self) -> Profile:
        return self.report.profile

    @cached_property
    def all_groups(self) -> tuple[Group, ...]:
        groups = groups_of(self.report)
        hand_over(groups, handoff_waits_by_line(self.report.handoffs), self._is_alone)
        note_skew(groups, self.profile, self.report.sites)
        take_from_callers(groups)
        return groups

    def _is_alone(self, group: Group) -> bool:
        """Return whether the program's source shows that no concurrent tasks execute the group."""
        return all(self.makes_tasks(frame) is False for frame in self.path_of(group))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups that take most of the time. Fixing other groups would save too little."""
        least_ns = min(MIN_SHARE * self.run_ns, MIN_NS)
        return tuple(
            self._with_plan(group)
            for group in self.all_groups[:MAX_GROUPS]
            if max(group.self_ns, group.cost_ns) >= least_ns
            and not any(map(is_own, self._stacks.get(group.statement, ())))
        )

    def _with_plan(self, group: Group) -> Group:
        """Return the group. If the program's plan is unknown, add the plan that queryprof's planner
        makes.
        """
        if not group.plans and (group.reads or group.writes):
            served = self.planner.served(group.statement, ())
            if served and served.plan:
                group.plans, group.planned_here = (served.plan,), True
                group.planned_by = served.other_version
        return group

    @cached_property
    def by_function(self) -> Mapping[Function, list[Group]]:
        """All groups by the function of their call site."""
        return by_function(self.all_groups)

    def near(self, function: Function | None) -> Sequence[Group]:
        """Return the groups of a function that take most of the time, at most MAX_NEAR."""
        return self.by_function.get(function, [])[:MAX_NEAR] if function else ()

    @cached_property
    def _parents(self) -> Mapping[Function, list[tuple[int, int, Group]]]:
        """The queries of each function with the rows that they returned."""
        return {
            function: sorted(
                (group.rows, place, group)
                for place, group in enumerate(groups)
                if group.reads and group.rows
            )
            for function, groups in self.by_function.items()
        }

    def queries_with_rows(self, function: Function, least: float, most: float) -> Iterator[Group]:
        """Return the queries of a function that returned between `least` and `most` rows in
        total.
        """
        parents = self._parents.get(function, [])
        for rows, _, group in parents[bisect_left(parents, (math.ceil(least),)) :]:
            if rows > most:
                return
            yield group

    @cached_property
    def _grown(self) -> Mapping[str, tuple[int, int]]:
        """The tables that have many times the rows that ANALYZE found: the rows found, and the
        present rows.
        """
        return {
            table: (found, schema.rows[table])
            for schema in self.schemas.values()
            for table, found in schema.analyzed_rows.items()
            if schema.rows.get(table, 0) >= max(STALE_ROWS, STALE_TIMES * found)
        }

    def stale_statistics(self, statement: str) -> tuple[str, ...]:
        """Return sentences about the outdated statistics that SQLite plans a statement with."""
        tables = self.planner.tables(statement) & self._grown.keys() if self._grown else ()
        return tuple(
            f"when ANALYZE last ran, {table} had {counted(self._grown[table][0], 'row')}; now it"
            f" has {average(self._grown[table][1])}"
            for table in sorted(tables)
        )

    @cached_property
    def _stacks(self) -> Mapping[str, list[CallPath]]:
        """The whole stacks of each statement's executions."""
        found: dict[str, list[CallPath]] = {}
        for sample in (self.profile.stack_samples, self.profile.exemplars):
            for one in sample:
                found.setdefault(one.statement, []).append(one.stack)
        return found

    def library(self, statement: str) -> str:
        """Return the package through which the program executes a statement; "" if none or
        unknown.
        """
        return next((package_of(stack) for stack in self._stacks.get(statement, ())), "")

    @cached_property
    def mapper(self) -> str:
        """The recording's only ORM whose statements have notes about what they load; "" if there
        are none or several.
        """
        found = {package_of(stack) for stacks in self._stacks.values() for stack in stacks}
        named = found & NAMING
        return named.pop() if len(named) == 1 else ""

    def called_library(self, statement: str) -> str:
        """Return the package whose calls are timed. This is the package nearest to the driver."""
        stacks = self._stacks.get(statement, ())
        return next((package_of(stack, frozenset()) for stack in stacks), "")

    def is_preload(self, group: Group) -> bool:
        """Return whether an ORM executes the statement after another query, to load related
        objects.
        """
        stacks = self._stacks.get(group.statement, ())
        return any(PRELOADS.intersection(frame.function.split(".")) for s in stacks for frame in s)

    @cached_property
    def preloaded_tables(self) -> frozenset[str]:
        """The tables whose rows an ORM loads together with the rows of another query."""
        return frozenset(
            first_table(one.statement) for one in self.all_groups if self.is_preload(one)
        )

    def note_of(self, group: Group) -> str | None:
        """Return a library's note on a group's statement; None if the note is about other groups
        with the same text.
        """
        note = self.profile.notes.get(group.statement)
        if note == SEVERAL:
            return None
        stacks = self._stacks.get(group.statement, ())
        here = [stack for stack in stacks if group.site.frame in stack]
        is_one = self._places[group.statement] == 1
        if note and not is_one:
            note = without_reader(note)  # another place may read the attribute
        if not here or (is_one and all(map(is_handed, here))):
            return note
        return note if any(loads_lazily(stack, note or "") for stack in here) else None

    @cached_property
    def _places(self) -> Counter[str]:
        """The number of places that execute each statement."""
        return Counter(group.statement for group in self.all_groups)

    def own_transactions(self, group: Group) -> int:
        """Return how many of a group's calls both took and released a file's write lock."""
        return self._own_transactions.get((group.statement, place_of(group.site.frame)), 0)

    @cached_property
    def _own_transactions(self) -> Mapping[object, int]:
        found: Counter[object] = Counter()
        for hold in self.profile.lock_holds:
            begun, ended = (hold.statement, hold.path), (hold.end_statement, hold.end_path)
            if hold.kind == "write" and begun == ended:
                found[hold.statement, self.report.sites.place(hold.path)] += hold.count
        return found

    def files_of(self, statements: Iterable[str]) -> int:
        """Return the number of database files that the locks and plans of the statements name.
        There may be more files.
        """
        found: set[str] = set()
        return len(found.union(*(self._files.get(one, ()) for one in statements)))

    @cached_property
    def _files(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for hold in self.profile.lock_holds:
            found[hold.statement].add(hold.database)
        for plan in self.profile.plans:
            found[plan.statement].add(plan.database)
        return found

    @cached_property
    def writers(self) -> frozenset[int]:
        """The processes that write."""
        return frozenset().union(*(one.process_ids for one in self.all_groups if one.writes))

    @cached_property
    def writes(self) -> bool:
        """Whether anything was written."""
        return any(group.writes for group in self.all_groups)

    @cached_property
    def spans(self) -> int:
        """The number of spans that ended."""
        return sum(found.span.count for found in self.report.spans)

    @cached_property
    def _spans_ns(self) -> int:
        return sum(found.span.durations.total_ns for found in self.report.spans)

    @cached_property
    def _whole(self) -> tuple[int, str]:
        return whole_of(self.profile, self._spans_ns)

    @property
    def run_ns(self) -> int:
        """The time in ns that shares refer to."""
        return self._whole[0]

    @property
    def whole(self) -> str:  # the name of the time in run_ns
        return self._whole[1]

    @cached_property
    def loops(self) -> dict[tuple[str, str, int, str], Frame | None]:
        """The cache of loop_around()."""
        return {}

    def path_of(self, group: Group) -> CallPath:
        """Return a group's call path up to the request around it, if there is one."""
        outside = self._outside.get(group.statement, frozenset())
        return tuple(itertools.takewhile(lambda frame: frame not in outside, group.path))

    @cached_property
    def _outside(self) -> Mapping[str, frozenset[Frame]]:
        """The frames around requests by statement."""
        found: dict[str, frozenset[Frame]] = {}
        for statement, stacks in self._stacks.items():
            frames = frozenset().union(*map(outside_of_request, stacks))
            if frames:
                found[statement] = frames
        return found

    def loop_of(self, group: Group) -> CallSite | None:
        """Return the innermost loop on a group's call path, or the line of a recursive call; None
        if unknown.
        """
        path = self.path_of(group)
        for depth in range(len(path)):
            loop = self.loop_around(group, depth)
            if loop == ENDLESS:
                return None  # the loop of a worker or server does not count
            if loop:
                return CallSite(loop, group.path[depth + 1 :])
        running = set()
        for depth, frame in enumerate(path):
            if (frame.file, frame.function) in running and not frame.function.endswith(">"):
                return CallSite(frame, group.path[depth + 1 :])
            running.add((frame.file, frame.function))
        return None

    def runs_endlessly(self, group: Group) -> bool:
        """Return whether the innermost loop on a group's call path is the endless loop of a worker
        or server.
        """
        loops = (self.loop_around(group, depth) for depth in range(len(self.path_of(group))))
        return next(filter(None, loops), None) == ENDLESS

    def loop_around(self, group: Group, depth: int) -> Frame | None:
        """Return the loop around a frame of a group's path (LoopFinder)."""
        frame = group.path[depth]
        called = (
            group.path[depth - 1].function.rpartition(".")[2] if depth else self.called_by(group)
        )
        key = (frame.file, frame.function, frame.line, called)
        if key not in self.loops:
            self.loops[key] = self.loop_at(frame, called)
        return self.loops[key]

    def called_by(self, group: Group) -> str:
        """Return the library function that the program calls at a group's place; "" if the program
        calls the driver itself, or if unknown.
        """
        return next(iter(self.calls_by(group)), "")

    def calls_by(self, group: Group) -> Sequence[str]:
        """Return the library's functions between the program's line and the driver, nearest to the
        program first.
        """
        return [one.function.rpartition(".")[2] for one in self.library_frames(group)]

    def library_frames(self, group: Group) -> Sequence[Frame]:
        """Return the frames of libraries between the program's line and the driver, nearest to the
        program first; empty if unknown.
        """
        frame = group.path[0] if group.path else None
        for stack in self._stacks.get(group.statement, ()):
            place = stack.index(frame) if frame in stack else 0
            if place:
                return stack[:place][::-1]
        return ()
