"""The facts about one statement at one call site. The rules derive findings from these facts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from queryprof.analysis.call_sites import CallSite, Function
from queryprof.analysis.files import FileWorkSums
from queryprof.analysis.marks import Mark, mark_of
from queryprof.analysis.plans import Steps, plan_signs, plans_by_statement
from queryprof.analysis.report import Report
from queryprof.analysis.spans import spans_are_sequential
from queryprof.analysis.totals import Totals, add_aggregates, self_ns_of
from queryprof.findings.given_values import SampledParameters
from queryprof.findings.line_times import execution_ns
from queryprof.model import ALL_PROCESSES, Aggregate, CallPath, CollapsedFigures, LineTime
from queryprof.operations import FETCH_OPERATIONS
from queryprof.sql.clauses import (
    READS,
    WRITES,
    Clauses,
    clauses_of,
    compared_columns,
    comparisons_of,
    has_list,
    is_single_statement,
    verb_of,
)
from queryprof.sql.operands import operand_column

MAX_GROUPS = 5000
MAIN_THREAD = "MainThread"

MIN_EXECUTIONS_FOR_OUTLIER = 20
OUTLIER_NS = 10_000_000
"""An execution is an outlier if it takes at least OUTLIER_NS longer than the median execution. A
statement with fewer than MIN_EXECUTIONS_FOR_OUTLIER executions has no outlier.
"""

TRIMMED = 0.25
"""If the longest execution's excess is more than this share of a statement's time, the excess is
not counted as a gain. Counting it made severities unstable: with one call of 4 ms among 250 (10 ms
in total), a finding was low in four recordings and medium in two.
"""


@dataclass(eq=False)
class StatementGroup:
    """One statement at one call site.

    Attributes:
        plans: the statement's plans; empty if unknown.
        planned_here: True if the plans come from an empty copy of the schema, because the driver
            does not show the program's plans.
        planned_by: the planner's SQLite version, if different from the program's.
        given: facts about the parameter values, from a sample of the executions.
        texts: the minimum number of SQL texts that normalize to the statement, over all call sites.
        line_times: the times of the program's line, one for each call path of the statement.
        handed_ns: the total time to hand the executions to a thread and back (see handing.py).
        skewed_ns: how much longer the line takes for the longest execution than for others, if the
            rows of that execution explain the difference.
        inside_ns: the time of other lines that run inside the statement's line.
        most_line_ns: an upper limit of the line's time: the time of the line that calls it.
        line_waits_ns: the total time that all statements of the line waited for locks, and the
            longest of these waits.
        overlaps: True if handed_ns is unknown because executions are awaited together.
        takes_turns: True if the requests (spans) that execute the statement run one after another,
            each in a thread of its own.
        is_of_library: True if a library executes the statement for itself. Its calls do other work
            as well, so the line's time is not the statement's.
    """

    statement: str
    site: CallSite
    share: float
    members: list[Aggregate]
    files: FileWorkSums = field(default_factory=FileWorkSums)
    plans: tuple[Steps, ...] = ()
    given: SampledParameters = field(default_factory=SampledParameters)
    texts: int = 1
    line_times: list[LineTime] = field(default_factory=list)
    planned_here: bool = False
    planned_by: str = ""
    handed_ns: float = 0.0
    skewed_ns: float = 0.0
    inside_ns: float = 0.0
    most_line_ns: float = inf
    line_waits_ns: tuple[int, int] = (0, 0)
    overlaps: bool = False
    takes_turns: bool = False
    is_of_library: bool = False
    collapsed: CollapsedFigures | None = None

    @cached_property
    def clauses(self) -> Clauses:
        return clauses_of(self.statement)

    @cached_property
    def totals(self) -> Totals:
        return add_aggregates(self.members)

    @cached_property
    def self_ns(self) -> int:
        return sum(member.self_ns for member in self.members)

    @cached_property
    def longest_extra_ns(self) -> int:
        """How much longer the longest execution took than the median, without lock waits; 0 if
        unknown or if there are few executions.
        """
        totals = self.totals
        if totals.executions < MIN_EXECUTIONS_FOR_OUTLIER or totals.has_calls_inside:
            return 0
        if totals.p50_ns is None or totals.max_ns is None:
            return 0
        return max(0, totals.max_ns - totals.p50_ns - self.files.max_lock_ns)

    @property
    def outlier_ns(self) -> int:
        """longest_extra_ns if it is at least OUTLIER_NS and more than half of self_ns; else 0."""
        is_most = self.longest_extra_ns > self.self_ns / 2 and self.longest_extra_ns >= OUTLIER_NS
        return self.longest_extra_ns if is_most else 0

    @cached_property
    def work_ns(self) -> int:
        """The time of the executions without their waits for locks."""
        return max(0, self.self_ns - self.files.lock_ns)

    @cached_property
    def steady_ns(self) -> int:
        """work_ns without the longest execution's excess, if that excess is more than a quarter of
        self_ns: the next run may not have such an execution.
        """
        is_much = self.longest_extra_ns > TRIMMED * self.self_ns and not self.skewed_ns
        return max(0, self.work_ns - (self.longest_extra_ns if is_much else 0))

    @cached_property
    def line_ns(self) -> float | None:
        """The time (ns) of the program's line per execution; None if unknown (see execution_ns)."""
        executions = self.totals.statement_executions
        return execution_ns(self.line_times, self.rows, executions, *self.line_waits_ns)

    @property
    def shares_line(self) -> bool:
        """Whether the line also executes other statements."""
        return any(one.others > 0 for one in self.line_times)

    @property
    def other_statements_per_pass(self) -> float:
        """The mean number of other statements that one run of the line executes."""
        passes = sum(one.passes for one in self.line_times)
        return sum(one.others for one in self.line_times) / passes if passes > 0 else 0.0

    @cached_property
    def cost_ns(self) -> float:
        """The time that the program saves without these executions: the time of the line that
        executes them, and their time in another thread. The result is at least the driver's
        measured time.
        """
        measured_ns = self.steady_ns + self.handed_ns
        if self.line_ns is None or self.is_of_library:
            return measured_ns
        elsewhere_ns = measured_ns if self.handed_ns else 0.0
        line_ns = min(self.total_line_ns, self.most_line_ns) - self.inside_ns
        return max(measured_ns, line_ns + elsewhere_ns)

    @property
    def mean_line_ns(self) -> float:
        """The time of the program's line per execution; 0 if the line was not timed."""
        return self.total_line_ns / max(1, self.totals.statement_executions)

    @property
    def timed_executions(self) -> int:
        """The number of executions in the timed passes of the line."""
        return sum(one.executions for one in self.line_times)

    @property
    def total_line_ns(self) -> float:
        """The time of the program's line in all executions; 0 if the line was not timed."""
        lines_ns = (self.line_ns or 0.0) * self.totals.statement_executions
        return lines_ns + self.skewed_ns if lines_ns else 0.0

    @property
    def total_median_ns(self) -> int:
        """The time that the executions would take if each took the median time. This excludes the
        waits of a few executions that wait long.
        """
        return (self.totals.p50_ns or 0) * self.totals.executions

    @cached_property
    def process_ids(self) -> frozenset[int]:
        return frozenset(member.thread.process_id for member in self.members)

    @property
    def processes(self) -> int:
        """The number of processes that execute the statement; in a collapsed trace an upper
        bound.
        """
        found = {member.thread.process_id for member in self.members}
        others = self.collapsed.executing if self.collapsed and ALL_PROCESSES in found else 0
        return len(found - {ALL_PROCESSES}) + others

    @cached_property
    def threads(self) -> int:
        """The largest number of threads in one process that execute the statement."""
        threads = {member.thread for member in self.members}
        found = Counter(thread.process_id for thread in threads)
        if self.collapsed and ALL_PROCESSES in found:  # thread names from several processes
            found[ALL_PROCESSES] = min(found[ALL_PROCESSES], self.collapsed.most_threads)
        return max(found.values(), default=0)

    @property
    def parallel_threads(self) -> int:
        """The number of threads that may execute the statement at the same time."""
        in_turns = self.takes_turns and all(member.span for member in self.members)
        return 1 if in_turns else self.threads

    @property
    def is_in_main_thread(self) -> bool:
        return all(member.thread.name == MAIN_THREAD for member in self.members)

    @cached_property
    def rows(self) -> int:
        return sum(member.rows for member in self.members)

    @cached_property
    def further_rows_ns(self) -> float:
        """The time to fetch all rows except each execution's first one. Any statement that returns
        these rows needs this time. The longest execution's extra time is left out.
        """
        executions = self.totals.executions
        if self.rows <= executions:
            return 0.0
        fetched_ns = sum(one.self_ns for one in self.members if one.operation in FETCH_OPERATIONS)
        longest = max(self.members, key=lambda one: one.max_ns)
        if longest.operation in FETCH_OPERATIONS:
            fetched_ns -= self.work_ns - self.steady_ns
        return max(0, min(fetched_ns, self.steady_ns)) * (1 - executions / self.rows)

    @cached_property
    def mark(self) -> Mark | None:
        return mark_of(self.plans, self.totals, self.share)

    @cached_property
    def verb(self) -> str:
        """The first word of the statement, in capitals."""
        return verb_of(self.statement)

    @property
    def compared_columns(self) -> list[str]:
        """The columns of scanned tables that the statement's text compares. Needed if the schema is
        unknown.
        """
        scans = dict.fromkeys(name for plan in self.plans for name in plan_signs(plan).scans)
        is_only = all(sum(map(_is_table_step, plan)) == 1 for plan in self.plans)
        return [
            f"{name}.{one}"
            for name in scans
            for one in compared_columns(self.statement, name, is_only=is_only)
        ]

    @property
    def reads(self) -> bool:
        """Whether the statement is a query. A text with several statements is not a query."""
        return self.verb in READS and is_single_statement(self.statement)

    @property
    def writes(self) -> bool:
        return self.verb in WRITES

    @cached_property
    def calls_by_operation(self) -> Mapping[str, int]:
        """The number of calls by driver operation, such as "fetchone"."""
        found: dict[str, int] = {}
        for member in self.members:
            found[member.operation] = found.get(member.operation, 0) + member.count
        return found

    @cached_property
    def compares_with_list(self) -> bool:
        """Whether the statement compares with a list of values."""
        return has_list(self.statement)

    @property
    def skips_many_rows(self) -> bool:
        """Whether OFFSET skips more rows than the statement returns, as far as known. ORMs also
        write OFFSET 0.
        """
        offset = self.given.mean_offset(self.totals.executions)
        is_small = offset is not None and offset <= max(1.0, self.totals.rows_each or 0.0)
        return self.clauses.skips and not is_small

    @cached_property
    def wildcard_share(self) -> float | None:
        """The share of the executions whose patterns begin with a wildcard; None if the statement
        has no patterns or the share is unknown.
        """
        has_pattern = any(o.operator in ("LIKE", "GLOB") for o in comparisons_of(self.statement))
        return self.given.wildcard_share(self.totals.executions) if has_pattern else None

    @property
    def fetches(self) -> int:
        """The number of calls that fetch the statement's rows."""
        return sum(self.calls_by_operation.get(operation, 0) for operation in FETCH_OPERATIONS)

    @property
    def is_distinct(self) -> bool:
        """Whether the query removes duplicate rows."""
        return any("DISTINCT" in what for plan in self.plans for what in plan_signs(plan).temporary)

    def compares_other_columns(self, columns: AbstractSet[str]) -> bool:
        """Return whether the statement compares a value with something other than these columns.

        Args:
            columns: in lower case.
        """
        for one in comparisons_of(self.statement):
            names = [operand_column(side).lower() for side in (one.left, one.right)]
            if not all(names) and columns.isdisjoint(names):
                return True
        return False

    @cached_property
    def executions_outside_spans(self) -> int:
        """The number of executions outside any request (span)."""
        return add_aggregates(member for member in self.members if not member.span).executions

    @cached_property
    def path(self) -> CallPath:
        """The call path that took most of the statement's time."""
        return max(self.members, key=lambda member: member.self_ns).path

    @property
    def function(self) -> Function | None:
        frame = self.site.frame
        return (frame.file, frame.function) if frame else None


GroupsByFunction = Mapping[Function, list[StatementGroup]]


def _is_table_step(step: str) -> bool:
    return step.lstrip().startswith(("SCAN", "SEARCH"))


def statement_groups(report: Report) -> tuple[StatementGroup, ...]:
    """Return the groups of a report that take most of the time, largest first."""
    profile, sites, files = report.profile, report.sites, report.files
    database_ns = self_ns_of(profile.aggregates) or 1
    by_site, most = report.by_site, list(report.spent_ns.items())[:MAX_GROUPS]
    plans = plans_by_statement(profile.plans)
    in_turns = spans_are_sequential(profile)
    groups = {
        key: StatementGroup(
            key[0],
            sites.site(max(by_site[key], key=lambda a: a.self_ns).path),
            spent_ns / database_ns,
            by_site[key],
            files.get(key, FileWorkSums()),
            plans=plans.get(key[0], ()),
            texts=profile.texts.get(key[0], 1),
            collapsed=profile.collapsed,
            takes_turns=in_turns,
        )
        for key, spent_ns in most
    }
    for sample in profile.parameters:
        group = groups.get((sample.statement, sites.place(sample.path)))
        if group:
            group.given.add_sample(sample)
    for one in profile.line_times:
        group = groups.get((one.statement, sites.place(one.path)))
        if group:
            group.line_times.append(one)
    return tuple(groups.values())


def groups_by_function(groups: Iterable[StatementGroup]) -> Mapping[Function, list[StatementGroup]]:
    """Return the groups by the function of their call site."""
    found: dict[Function, list[StatementGroup]] = defaultdict(list)
    for group in groups:
        if group.function:
            found[group.function].append(group)
    return found
