"""Compare runs before a change with runs after it: by metric, and by statement.

Counts of work (executions, rows, VM steps) do not vary between runs and are compared exactly. Times
vary and need MIN_TIMED_RUNS runs per side; with fewer runs, a change in time is "unclear".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import basename
from statistics import fmean
from typing import NamedTuple

from queryprof.analysis.call_sites import CallSite, Function, call_site, find_helpers
from queryprof.analysis.overview import overview_of
from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.totals import add_aggregates, group_aggregates
from queryprof.comparing.comparison_result import (
    MAX_COURSE,
    TOLERANCE,
    Comparison,
    Course,
    MetricChange,
    PlanChange,
    SiteChange,
    StatementChange,
    Verdict,
)
from queryprof.comparing.migration_records import statements_on_migration_records
from queryprof.comparing.random_names import fold_random_names
from queryprof.comparing.verdicts import (
    CHANGED,
    CPU,
    IO,
    LOOPS,
    MEMORY,
    RUN,
    STATEMENT,
    WHOLE,
    WHOLE_TESTS,
    Metric,
    MetricComparer,
    Values,
)
from queryprof.model import Aggregate, Profile
from queryprof.operations import STATEMENT_OPERATIONS

MIN_TIME_CHANGE = 0.01
"""A change in a statement's time counts as no change if it is smaller than this share of the runs'
database time.
"""

SITES = 3
"""The number of call sites to show for a statement."""

MIN_STEP_CHANGE = 0.001
"""A change smaller than this share of the runs' VM steps counts as no change, because SQLite needs
more steps to read a schema with an additional index or column.
"""

Side = list[Mapping[str, list[Aggregate]]]


class _SmallestChanges(NamedTuple):
    """The smallest changes of a statement that matter."""

    ns: float
    vm_steps: float


class _StatementJudges(NamedTuple):
    """Compares a statement's values.

    If the time of the whole runs got better or worse, statements that changed in the same direction
    explain this change, and get the limit for whole runs. All other statements get a stricter
    limit, because many statements are tested at once.
    """

    of_whole: MetricComparer
    together: MetricComparer
    whole: Sequence[MetricChange]

    def __call__(self, metric: Metric, before: Values, after: Values) -> MetricChange:
        (time,) = (change.verdict for change in self.whole if change.metric == "database_ns")
        if metric.gate == "time" and time in CHANGED:
            change = self.of_whole(metric, before, after)
            if change.verdict is time:
                return change
        return self.together(metric, before, after)


def _run_ns(profile: Profile) -> float | None:
    return overview_of(profile).run_ns if profile.processes else None


def _with_stable_names(profile: Profile) -> Profile:
    """Replace random names in statements by names that are the same in every run, as
    baselines do.
    """
    aggregates = [a._replace(statement=fold_random_names(a.statement)) for a in profile.aggregates]
    plans = [replace(plan, statement=fold_random_names(plan.statement)) for plan in profile.plans]
    return replace(profile, aggregates=tuple(aggregates), plans=tuple(plans))


def compare(
    before: Sequence[Profile], after: Sequence[Profile], tolerance: float = TOLERANCE
) -> Comparison:
    """Compare one or several runs per side.

    Raises:
        ValueError: a side has no run.
    """
    if not before or not after:
        raise ValueError("each side needs a run")
    before, after = [_with_stable_names(p) for p in before], [_with_stable_names(p) for p in after]
    versions = {one for profile in (*before, *after) for one in profile.sqlite_versions}
    same_sqlite = len(versions) <= 1
    compared = MetricComparer(tolerance, same_sqlite)
    sides = (
        [_aggregates_by_statement(p) for p in before],
        [_aggregates_by_statement(p) for p in after],
    )
    totals = [
        [add_aggregates(a for group in run.values() for a in group) for run in side]
        for side in sides
    ]
    whole = [compared(m, *([m.value_in(run) for run in side] for side in totals)) for m in WHOLE]
    whole.append(compared(RUN, [_run_ns(p) for p in before], [_run_ns(p) for p in after]))
    has_loops = any(profile.loops for profile in (*before, *after))
    has_cpu = all(profile.thread_usage for profile in (*before, *after))
    whole += [
        compared(metric, [of(p) for p in before], [of(p) for p in after])
        for metric, of in (
            *(CPU if has_cpu else ()),
            *MEMORY,
            *IO,
            *(LOOPS if has_loops else ()),
        )
    ]
    names = sorted({name for side in sides for run in side for name in run})
    runs = [run for side in totals for run in side]
    least = _SmallestChanges(
        MIN_TIME_CHANGE * fmean(run.self_ns for run in runs),
        MIN_STEP_CHANGE * fmean(run.vm_steps_sum or 0 for run in runs),
    )
    whole = _mark_small_changes_same(whole, "vmsteps", "vm_steps", least.vm_steps)
    judges = _StatementJudges(
        compared, replace(compared, tests=_timed_statement_count(sides, least)), whole
    )
    helpers = find_helpers(a for profile in (*before, *after) for a in profile.aggregates)
    plans = [plans_by_statement(p for run in side for p in run.plans) for side in (before, after)]
    changes = [
        _compare_statement(
            name,
            sides,
            judges,
            helpers,
            PlanChange(*(met.get(name, ()) for met in plans)),
            least,
        )
        for name in names
    ]
    order = {"new": 0, "gone": 1, "known": 2}
    changes.sort(key=lambda c: (order[c.kind], _BADNESS[c.verdict], -_database_ns(c), c.statement))
    return Comparison(
        len(before),
        len(after),
        same_sqlite,
        tuple(whole),
        tuple(changes),
        (_busy_course(before[0]), _busy_course(after[0])),
    )


def _busy_course(profile: Profile) -> Course:
    if not profile.timeline:
        return ()
    width_ns = profile.timeline_width_ns
    start_ns, _ = profile.span_unix_ns
    spent = {(i.start_unix_ns - start_ns) // width_ns: i.self_ns for i in profile.timeline}
    # The timeline skips intervals without calls, but the chart needs them.
    numbers = range(min(0, *spent), max(spent) + 1)
    if len(numbers) > MAX_COURSE:
        return ()
    return tuple(
        (max(0.0, (number + 0.5) * width_ns / 1e9), max(0, spent.get(number, 0)) / width_ns)
        for number in numbers
    )


_BADNESS = {Verdict.WORSE: 0, Verdict.BETTER: 1, Verdict.UNCLEAR: 2, Verdict.SAME: 3}


def _aggregates_by_statement(profile: Profile) -> Mapping[str, list[Aggregate]]:
    skipped = statements_on_migration_records(profile.plans)
    return group_aggregates(
        (
            a
            for a in profile.aggregates
            if not a.statement.startswith("(") and a.statement not in skipped
        ),
        lambda a: a.statement,
    )


def _database_ns(change: StatementChange) -> float:
    return max((c.after or c.before or 0) for c in change.changes if c.metric == "database_ns")


def _compare_statement(
    statement: str,
    sides: tuple[Side, Side],
    judges: _StatementJudges,
    helpers: frozenset[Function],
    plans: PlanChange,
    least: _SmallestChanges,
) -> StatementChange:
    before, after = ([run.get(statement, []) for run in side] for side in sides)
    kind = "known" if any(before) and any(after) else "gone" if any(before) else "new"
    totals = [[add_aggregates(run) for run in side] for side in (before, after)]
    changes = []
    for metric in STATEMENT:
        # A run that did not execute the statement has exactly 0, not an unknown value.
        pair = [
            [metric.value_in(run) if run.calls or metric.name == "mean_ns" else 0.0 for run in side]
            for side in totals
        ]
        changes.append(judges(metric, *pair))
    changes = _mark_small_changes_same(changes, "time", "database_ns", least.ns)
    changes = _mark_small_changes_same(changes, "vmsteps", "vm_steps", least.vm_steps)
    return StatementChange(
        statement, kind, tuple(changes), _most_changed_sites((before, after), helpers), plans
    )


def _mark_small_changes_same(
    changes: list[MetricChange], gate: str, metric: str, least: float
) -> list[MetricChange]:
    """Return the changes. If `metric` changed by less than `least`, the verdict of all changes with
    this gate becomes SAME.
    """
    (one,) = (change for change in changes if change.metric == metric)
    if abs((one.after or 0) - (one.before or 0)) >= least:
        return changes
    return [
        (
            replace(change, verdict=Verdict.SAME)
            if change.gate == gate and change.verdict in CHANGED
            else change
        )
        for change in changes
    ]


def _timed_statement_count(sides: tuple[Side, Side], least: _SmallestChanges) -> int:
    """Return the number of statements that take at least `least.ns`, or WHOLE_TESTS if larger."""
    means: dict[str, float] = {}
    for side in sides:
        for run in side:
            for name, group in run.items():
                means[name] = means.get(name, 0.0) + add_aggregates(group).self_ns / len(side)
    return max(WHOLE_TESTS, sum(mean >= least.ns for mean in means.values()))


def _most_changed_sites(
    sides: tuple[list[list[Aggregate]], list[list[Aggregate]]], helpers: frozenset[Function]
) -> tuple[SiteChange, ...]:
    """Return the call sites whose executions increased most. Line numbers and directories differ
    between revisions, so executions are compared per function and file name. The result shows the
    function's busiest line, from `after` if possible.
    """
    counts: dict[Function, list[float]] = {}
    shown: dict[Function, CallSite] = {}
    for side, runs in enumerate(sides):
        busiest: dict[Function, int] = {}
        for aggregate in (a for run in runs for a in run):
            # An aggregate without a count has only SQLite's counters of earlier executions.
            if aggregate.operation not in STATEMENT_OPERATIONS or not aggregate.count:
                continue
            site = call_site(aggregate.path, helpers)
            place = (basename(site.frame.file), site.frame.function) if site.frame else ("", "")
            counts.setdefault(place, [0.0, 0.0])[side] += aggregate.count / len(runs)
            if aggregate.count > busiest.get(place, 0):
                busiest[place] = aggregate.count
                shown[place] = site
    ranked = sorted(counts, key=lambda p: (-(counts[p][1] - counts[p][0]), -counts[p][1], p))
    return tuple(SiteChange(shown[p], counts[p][0], counts[p][1]) for p in ranked[:SITES])


def regressions(
    comparison: Comparison, gates: Iterable[str]
) -> tuple[StatementChange | MetricChange, ...]:
    """Return the statements and the metrics of whole runs that got worse in one of `gates` (see
    MetricChange.gate).

    The gate of a new statement is `counts`.
    """
    wanted = frozenset(gates)
    whole = [c for c in comparison.whole if c.gate in wanted and c.verdict is Verdict.WORSE]
    statements = [
        change
        for change in comparison.statements
        if ("plans" in wanted and change.plans.verdict is Verdict.WORSE)
        or any(c.gate in wanted and c.verdict is Verdict.WORSE for c in change.changes)
    ]
    return (*statements, *whole)


def has_no_statements(profiles: Iterable[Profile]) -> bool:
    """Return whether none of the runs executed a statement."""
    return not any(add_aggregates(profile.aggregates).statement_executions for profile in profiles)
