"""The recorded data of a program, prepared for the rules: groups, times, loops, libraries."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from queryprof.analysis.call_sites import Function, place_of
from queryprof.analysis.handoffs import handoff_waits_by_line
from queryprof.analysis.library_frames import (
    frames_outside_request,
    is_lazy_load,
    package_near_driver,
    package_that_executes,
    runs_in_driver_thread,
)
from queryprof.analysis.report import Report
from queryprof.analysis.units import average, counted
from queryprof.findings.finding import (
    MIN_NS,
    MIN_SHARE,
)
from queryprof.findings.groups import StatementGroup, groups_by_function, statement_groups
from queryprof.findings.handing import divide_hand_over_time
from queryprof.findings.libraries import (
    NOTE_LIBRARIES,
    PRELOADS,
    SEVERAL,
    is_unknown_library,
    note_without_reader,
)
from queryprof.findings.lines_inside import set_line_waits, subtract_inner_line_times
from queryprof.findings.selectivity import can_stop_early
from queryprof.findings.skew import set_skewed_times
from queryprof.findings.source_lines import (
    NO_LINES,
    NO_TASKS,
    LoopFinder,
    SourceLines,
    TaskFinder,
)
from queryprof.findings.whole import reference_time
from queryprof.model import CallPath, Frame, Profile, Schema
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.planner.facts import NO_PLANNER, IndexHelp, Planner
from queryprof.sql.clauses import clauses_of, first_table

MAX_GROUPS = 1000
MAX_NEAR = 200
HEAVY_SHARE = 0.30
"""A few transactions are reported if they take at least this share of the time."""

STALE_ROWS, STALE_TIMES = 1000, 10
"""Statistics are stale if a table has at least this many rows, and this many times the rows that
ANALYZE found.
"""


@dataclass(frozen=True)
class RecordedData:
    """The recorded data that findings are made from.

    Attributes:
        loop_at, makes_tasks, lines: look up loops, tasks and lines in the program's source.
        schemas: the schemas by database file, as far as readable.
        planner: plans statements with SQLite, and proposes indexes.
        server: what a PostgreSQL server reports about the statements.
    """

    report: Report
    loop_at: LoopFinder
    schemas: Mapping[str, Schema]
    planner: Planner = NO_PLANNER
    makes_tasks: TaskFinder = NO_TASKS
    server: ServerFacts = NO_SERVER
    lines: SourceLines = NO_LINES

    def index_help(self, group: StatementGroup) -> IndexHelp | None:
        """Return the planner's facts about a group's statement, such as a helpful index; None if
        unknown.
        """
        index_help = self.planner.index_help(group.statement, group.plans)
        sorts_only = (
            index_help and index_help.code and index_help.sorts_less and not index_help.searches
        )
        if (
            index_help
            and sorts_only
            and group.clauses.limits
            and can_stop_early(group, index_help) is False
        ):
            return replace(
                index_help.filtering or IndexHelp(index_help.plan),
                is_aggregate=index_help.is_aggregate,
                row_steps=index_help.row_steps,
                other_version=index_help.other_version,
            )
        return index_help

    @property
    def profile(self) -> Profile:
        return self.report.profile

    @cached_property
    def all_groups(self) -> tuple[StatementGroup, ...]:
        groups = statement_groups(self.report)
        for group in groups:
            group.is_of_library = is_unknown_library(self.library(group.statement))
        divide_hand_over_time(groups, handoff_waits_by_line(self.report.handoffs), self._is_serial)
        set_skewed_times(groups, self.profile, self.report.sites)
        set_line_waits(groups)
        subtract_inner_line_times(groups)
        return groups

    def _is_serial(self, group: StatementGroup) -> bool:
        """Return whether the program's source shows that no concurrent tasks execute the group."""
        return all(self.makes_tasks(frame) is False for frame in self.path_inside_request(group))

    @cached_property
    def groups(self) -> tuple[StatementGroup, ...]:
        """The groups that take most of the time. Fixing other groups would save too little."""
        least_ns = min(MIN_SHARE * self.run_ns, MIN_NS)
        return tuple(
            self._with_plan(group)
            for group in self.all_groups[:MAX_GROUPS]
            if max(group.self_ns, group.cost_ns) >= least_ns
            and group.statement not in self.report.own_statements
        )

    def _with_plan(self, group: StatementGroup) -> StatementGroup:
        """Return the group. If the program's plan is unknown, add the plan that queryprof's planner
        makes.
        """
        if not group.plans and (group.reads or group.writes):
            index_help = self.planner.index_help(group.statement, ())
            if index_help and index_help.plan:
                group.plans, group.planned_here = (index_help.plan,), True
                group.planned_by = index_help.other_version
        return group

    @cached_property
    def by_function(self) -> Mapping[Function, list[StatementGroup]]:
        """All groups by the function of their call site."""
        return groups_by_function(self.all_groups)

    def groups_of_function(self, function: Function | None) -> Sequence[StatementGroup]:
        """Return the groups of a function that take most of the time, at most MAX_NEAR."""
        return self.by_function.get(function, [])[:MAX_NEAR] if function else ()

    @cached_property
    def _queries_by_function(self) -> Mapping[Function, list[tuple[int, int, StatementGroup]]]:
        """The queries of each function, sorted by the number of rows that they returned."""
        return {
            function: sorted(
                (group.rows, place, group)
                for place, group in enumerate(groups)
                if group.reads and group.rows
            )
            for function, groups in self.by_function.items()
        }

    def queries_with_rows(
        self, function: Function, least: float, most: float
    ) -> Iterator[StatementGroup]:
        """Return the queries of a function that returned between `least` and `most` rows in
        total.
        """
        parents = self._queries_by_function.get(function, [])
        for rows, _, group in parents[bisect_left(parents, (math.ceil(least),)) :]:
            if rows > most:
                return
            yield group

    @cached_property
    def _grown_tables(self) -> Mapping[str, tuple[int, int]]:
        """Tables that have grown much since ANALYZE: the number of rows then, and now."""
        return {
            table: (found, schema.rows[table])
            for schema in self.schemas.values()
            for table, found in schema.analyzed_rows.items()
            if schema.rows.get(table, 0) >= max(STALE_ROWS, STALE_TIMES * found)
        }

    def stale_statistics(self, statement: str) -> tuple[str, ...]:
        """Return sentences about the outdated statistics that SQLite plans a statement with."""
        tables = (
            self.planner.tables(statement) & self._grown_tables.keys() if self._grown_tables else ()
        )
        return tuple(
            f"when ANALYZE last ran, {table} had {counted(self._grown_tables[table][0], 'row')};"
            f" now it has {average(self._grown_tables[table][1])}"
            for table in sorted(tables)
        )

    @cached_property
    def _stacks(self) -> Mapping[str, list[CallPath]]:
        """The recorded full stacks of each statement's executions."""
        found: dict[str, list[CallPath]] = {}
        for sample in (self.profile.stack_samples, self.profile.exemplars):
            for one in sample:
                found.setdefault(one.statement, []).append(one.stack)
        return found

    def library(self, statement: str) -> str:
        """Return the package through which the program executes a statement; "" if there is none,
        or if it is unknown. If the program's own class declares the statement's table, the package
        is the object mapper, because a package in front of it only passes the class on.
        """
        stack = next(iter(self._stacks.get(statement, ())), ())
        package, mapper = package_that_executes(stack), package_near_driver(stack)
        table = clauses_of(statement).changed or first_table(statement)
        is_passed_on = package != mapper and self.lines.declares_table(table)
        return mapper if is_passed_on else package

    @cached_property
    def object_mapper(self) -> str:
        """The recording's only ORM whose statements have notes about what they load; "" if there
        are none or several.
        """
        found = {package_near_driver(stack) for stacks in self._stacks.values() for stack in stacks}
        named = found & NOTE_LIBRARIES
        return named.pop() if len(named) == 1 else ""

    def timed_library(self, statement: str) -> str:
        """Return the package whose calls are timed. This is the package nearest to the driver."""
        stacks = self._stacks.get(statement, ())
        return next((package_near_driver(stack, frozenset()) for stack in stacks), "")

    def is_related_preload(self, group: StatementGroup) -> bool:
        """Return whether an ORM executes the statement after another query, to load related
        objects.
        """
        stacks = self._stacks.get(group.statement, ())
        return any(PRELOADS.intersection(frame.function.split(".")) for s in stacks for frame in s)

    @cached_property
    def preloaded_tables(self) -> frozenset[str]:
        """The tables whose rows an ORM loads together with the rows of another query."""
        return frozenset(
            first_table(one.statement) for one in self.all_groups if self.is_related_preload(one)
        )

    def library_note(self, group: StatementGroup) -> str | None:
        """Return a library's note on a group's statement, such as "lazy load of Order.lines"; None
        if the note is about other groups with the same text.
        """
        note = self.profile.notes.get(group.statement)
        if note == SEVERAL:
            return None
        stacks = self._stacks.get(group.statement, ())
        here = [stack for stack in stacks if group.site.frame in stack]
        is_one = self._place_counts[group.statement] == 1
        if note and not is_one:
            note = note_without_reader(note)  # another line may read the attribute
        if not here or (is_one and all(map(runs_in_driver_thread, here))):
            return note
        return note if any(is_lazy_load(stack, note or "") for stack in here) else None

    @cached_property
    def _place_counts(self) -> Counter[str]:
        """The number of call sites that execute each statement."""
        return Counter(group.statement for group in self.all_groups)

    def own_transaction_count(self, group: StatementGroup) -> int:
        """Return how many of a group's calls both took and released a file's write lock."""
        return self._own_transaction_counts.get((group.statement, place_of(group.site.frame)), 0)

    @cached_property
    def _own_transaction_counts(self) -> Mapping[object, int]:
        found: Counter[object] = Counter()
        for hold in self.profile.lock_holds:
            begun, ended = (hold.statement, hold.path), (hold.end_statement, hold.end_path)
            if hold.kind == "write" and begun == ended:
                found[hold.statement, self.report.sites.place(hold.path)] += hold.count
        return found

    def database_file_count(self, statements: Iterable[str]) -> int:
        """Return the number of database files that the locks and plans of the statements name.
        There may be more files.
        """
        found: set[str] = set()
        return len(found.union(*(self._files_by_statement.get(one, ()) for one in statements)))

    @cached_property
    def _files_by_statement(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for hold in self.profile.lock_holds:
            found[hold.statement].add(hold.database)
        for plan in self.profile.plans:
            found[plan.statement].add(plan.database)
        return found

    @cached_property
    def writing_process_ids(self) -> frozenset[int]:
        """The IDs of the processes that execute writes."""
        return frozenset().union(*(one.process_ids for one in self.all_groups if one.writes))

    @cached_property
    def writes(self) -> bool:
        """Whether the program executed a write."""
        return any(group.writes for group in self.all_groups)

    @cached_property
    def spans(self) -> int:
        """The number of spans that ended."""
        return sum(found.span.count for found in self.report.spans)

    @cached_property
    def _spans_ns(self) -> int:
        return sum(found.span.durations.total_ns for found in self.report.spans)

    @cached_property
    def _reference_time(self) -> tuple[int, str]:
        return reference_time(self.profile, self._spans_ns)

    @property
    def run_ns(self) -> int:
        """The total time (100%) for shares, in nanoseconds."""
        return self._reference_time[0]

    @property
    def whole(self) -> str:  # the name of the time in run_ns
        return self._reference_time[1]

    def path_inside_request(self, group: StatementGroup) -> CallPath:
        """Return a group's call path up to the request around it, if there is one."""
        outside = self._frames_outside_requests.get(group.statement, frozenset())
        return tuple(itertools.takewhile(lambda frame: frame not in outside, group.path))

    @cached_property
    def _frames_outside_requests(self) -> Mapping[str, frozenset[Frame]]:
        """The frames around requests by statement."""
        found: dict[str, frozenset[Frame]] = {}
        for statement, stacks in self._stacks.items():
            frames = frozenset().union(*map(frames_outside_request, stacks))
            if frames:
                found[statement] = frames
        return found

    def called_library_function(self, group: StatementGroup) -> str:
        """Return the library function that the program calls at a group's call site; "" if the
        program calls the driver itself, or if unknown.
        """
        return next(iter(self.called_library_functions(group)), "")

    def called_library_functions(self, group: StatementGroup) -> Sequence[str]:
        """Return the library's functions between the program's line and the driver, nearest to the
        program first.
        """
        return [one.function.rpartition(".")[2] for one in self.library_frames(group)]

    def library_frames(self, group: StatementGroup) -> Sequence[Frame]:
        """Return the frames of libraries between the program's line and the driver, nearest to the
        program first; empty if unknown.
        """
        frame = group.path[0] if group.path else None
        for stack in self._stacks.get(group.statement, ()):
            place = stack.index(frame) if frame in stack else 0
            if place:
                return stack[:place][::-1]
        return ()
