"""Comparing runs before a change with runs after it: metric by metric, statement by statement.

Counts of work (executions, rows, VM steps) have no noise in them and are compared exactly. Times
have, and are compared over several runs a side; with fewer a change of time is "unclear".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from os.path import basename
from statistics import fmean

from queryprof.analysis.bootstrap import ratio_interval
from queryprof.analysis.call_sites import CallSite, Function, call_site, find_helpers
from queryprof.analysis.overview import overview_of
from queryprof.analysis.plans import Steps, plans_by_statement, worse_plans
from queryprof.analysis.totals import Totals, add_up, group_by
from queryprof.model import Aggregate, Profile
from queryprof.operations import STATEMENT_OPERATIONS

MIN_TIMED_RUNS = 4
"""Runs a side for a verdict on times: with 3 a side, one in ten pairs of equal programs would
differ by luck (2 of the 20 orders of six runs part them cleanly)."""

NOISY = frozenset({"io", "time"})
"""Gates of metrics that differ between equal runs, and are compared with statistics."""

SITES = 3
"""Call sites shown of a statement."""


class Verdict(StrEnum):
    """What a change is to whoever made it."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is no change: shares of the value before.

    Attributes:
        time: of timed metrics.
        vm_steps: of VM steps between different versions of SQLite; between equal ones it is 0.
    """

    time: float = 0.05
    vm_steps: float = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """One metric on both sides.

    Attributes:
        metric: its name, the unit at the end (`database_ns`).
        gate: what it belongs to when failing is asked for: counts, plans, vmsteps, io or time.
        before, after: means over the runs; None: unknown.
        ratio: after / before; None: unknown, or nothing before.
        interval: of the ratio (95%); timed metrics of several runs alone.
    """

    metric: str
    gate: str
    before: float | None
    after: float | None
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SiteChange:
    """How often a call site executes a statement in a run, before and after."""

    site: CallSite
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The different plans that a statement had before and after; empty: unknown."""

    before: tuple[Steps, ...]
    after: tuple[Steps, ...]

    @property
    def verdict(self) -> Verdict:
        if worse_plans(self.before, self.after):
            return Verdict.WORSE
        return Verdict.BETTER if worse_plans(self.after, self.before) else Verdict.SAME


@dataclass(frozen=True, slots=True)
class StatementChange:
    """One statement on both sides.

    Attributes:
        kind: new, gone or known.
        sites: where its executions changed most; of a new or known statement as they are after.
    """

    statement: str
    kind: str
    changes: tuple[Change, ...]
    sites: tuple[SiteChange, ...]
    plans: PlanChange

    @property
    def verdict(self) -> Verdict:
        """Worse as soon as a metric or the plan is, else better as soon as one is."""
        verdicts = {self.plans.verdict, *(change.verdict for change in self.changes)}
        for verdict in (Verdict.WORSE, Verdict.BETTER, Verdict.UNCLEAR):
            if verdict in verdicts:
                return verdict
        return Verdict.SAME


LONGEST_COURSE = 4096
"""Intervals. A timeline has 512; with more from the start on, the clock was set meanwhile."""

Course = tuple[tuple[float, float], ...]
"""A run's way: (seconds since its start, share of the time in the database then)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs before and after.

    Attributes:
        whole: metrics of whole runs; of executions, unless they say otherwise.
        statements: new ones first, then gone ones, then known ones, worst first.
        courses: of the first run of each side.
    """

    before_runs: int
    after_runs: int
    same_sqlite: bool
    whole: tuple[Change, ...]
    statements: tuple[StatementChange, ...]
    courses: tuple[Course, Course]


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    gate: str
    of: Callable[[Totals], float | None]
    more_is_better: bool = False


def compare(
    before: Sequence[Profile], after: Sequence[Profile], tolerance: Tolerance | None = None
) -> Comparison:
    """Compares one or several runs a side.

    Raises:
        ValueError: a side has no run.
    """
    if not before or not after:
        raise ValueError("each side needs a run")
    tolerance = tolerance or Tolerance()
    versions = {p.sqlite_version for profile in (*before, *after) for p in profile.processes}
    versions.discard("")  # of processes that did not use it
    same_sqlite = len(versions) <= 1
    judge = _Judge(tolerance, same_sqlite)
    sides = ([_statements(p) for p in before], [_statements(p) for p in after])
    totals = [
        [add_up(a for group in run.values() for a in group) for run in side] for side in sides
    ]
    whole = [judge(m, *([m.of(run) for run in side] for side in totals)) for m in _WHOLE]
    whole.append(judge(_RUN, [_run_ns(p) for p in before], [_run_ns(p) for p in after]))
    has_loops = any(profile.loops for profile in (*before, *after))
    whole += [
        judge(metric, [of(p) for p in before], [of(p) for p in after])
        for metric, of in (*_IO, *(_LOOPS if has_loops else ()))
    ]
    names = sorted({name for side in sides for run in side for name in run})
    helpers = find_helpers(a for profile in (*before, *after) for a in profile.aggregates)
    plans = [plans_by_statement(p for run in side for p in run.plans) for side in (before, after)]
    changes = [
        _compare_statement(
            name, sides, judge, helpers, PlanChange(*(met.get(name, ()) for met in plans))
        )
        for name in names
    ]
    order = {"new": 0, "gone": 1, "known": 2}
    changes.sort(key=lambda c: (order[c.kind], _BADNESS[c.verdict], -_spent_ns(c), c.statement))
    return Comparison(
        len(before), len(after), same_sqlite, tuple(whole), tuple(changes),
        (_course(before[0]), _course(after[0])),
    )  # fmt: skip


def _course(profile: Profile) -> Course:
    if not profile.timeline:
        return ()
    width_ns = profile.timeline_width_ns
    start_ns = min(p.start_unix_ns for p in profile.processes)
    spent = {(i.start_unix_ns - start_ns) // width_ns: i.self_ns for i in profile.timeline}
    # An interval without calls is not in the timeline, and has a place in the chart.
    numbers = range(min(0, *spent), max(spent) + 1)
    if len(numbers) > LONGEST_COURSE:
        return ()
    return tuple(
        (max(0.0, (number + 0.5) * width_ns / 1e9), max(0, spent.get(number, 0)) / width_ns)
        for number in numbers
    )


_BADNESS = {Verdict.WORSE: 0, Verdict.BETTER: 1, Verdict.UNCLEAR: 2, Verdict.SAME: 3}


def _statements(profile: Profile) -> Mapping[str, list[Aggregate]]:
    return group_by(
        (a for a in profile.aggregates if not a.statement.startswith("(")), lambda a: a.statement
    )


def _spent_ns(change: StatementChange) -> float:
    return max((c.after or c.before or 0) for c in change.changes if c.metric == "database_ns")


def _known(counter: Callable[[Totals], int]) -> Callable[[Totals], int | None]:
    return lambda totals: counter(totals) if totals.counted else None


def _per_database_s(amount: Callable[[Totals], int]) -> Callable[[Totals], float | None]:
    return lambda totals: amount(totals) / totals.self_ns * 1e9 if totals.self_ns else None


_COUNTS = (
    _Metric("executions", "counts", lambda totals: totals.statement_executions),
    _Metric("rows", "counts", lambda totals: totals.rows),
    _Metric("errors", "counts", lambda totals: totals.errors),
    _Metric("vm_steps", "vmsteps", _known(lambda totals: totals.vm_steps_sum)),
    _Metric("full_scan_steps", "vmsteps", _known(lambda totals: totals.full_scan_steps_sum)),
    _Metric("sorts", "vmsteps", _known(lambda totals: totals.sorts_sum)),
    _Metric("automatic_indexes", "vmsteps", _known(lambda totals: totals.automatic_indexes_sum)),
)
_TIMES = (
    _Metric("database_ns", "time", lambda totals: totals.self_ns),
    _Metric("mean_ns", "time", lambda totals: totals.mean_ns),
)
_WHOLE = (
    *_COUNTS,
    *_TIMES,
    _Metric("max_ns", "time", lambda totals: totals.max_ns),
    _Metric("min_call_ns", "time", lambda totals: totals.min_call_ns if totals.calls else None),
    _Metric("deviation_ns", "time", lambda totals: totals.deviation_ns),
    _Metric("executions_per_database_s", "time",
            _per_database_s(lambda totals: totals.statement_executions), more_is_better=True),
    _Metric("rows_per_database_s", "time", _per_database_s(lambda totals: totals.rows),
            more_is_better=True),
)  # fmt: skip
_RUN = _Metric("run_ns", "time", lambda _: None)
_STATEMENT = (*_COUNTS, *_TIMES)
_NOT_ALONE = frozenset({"max_ns", "min_call_ns", "deviation_ns"})
"""Shown, but no verdict of their own: a single execution, or the noise itself, decides them."""

_IO: tuple[tuple[_Metric, Callable[[Profile], float | None]], ...] = (
    (
        _Metric("read_bytes", "io", lambda _: None),
        lambda p: _bytes(x.read_bytes for x in p.processes),
    ),
    (
        _Metric("written_bytes", "io", lambda _: None),
        lambda p: _bytes(x.written_bytes for x in p.processes),
    ),
)
"""Of whole processes."""


def _bytes(of_processes: Iterable[int | None]) -> int | None:
    known = [amount for amount in of_processes if amount is not None]
    return sum(known) if known else None


_LOOPS: tuple[tuple[_Metric, Callable[[Profile], float | None]], ...] = (
    (
        _Metric("loop_lag_ns", "time", lambda _: None),
        lambda p: _mean(sum(x.beat_lag.total_ns for x in p.loops),
                        sum(x.beat_lag.count for x in p.loops)),
    ),
    (
        _Metric("stall_ns", "time", lambda _: None),
        lambda p: sum(s.total_ns for x in p.loops for s in x.stalls) if p.loops else None,
    ),
)  # fmt: skip
"""Of event loops: the mean lag of their heartbeats, and the time of their stalls."""


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


Values = list[float | None]


def _run_ns(profile: Profile) -> float | None:
    return overview_of(profile).run_ns if profile.processes else None


@dataclass(frozen=True, slots=True)
class _Judge:
    """Puts a metric's values of all runs together, and says what their change is."""

    tolerance: Tolerance
    same_sqlite: bool

    def __call__(self, metric: _Metric, before: Values, after: Values) -> Change:
        known_before = [value for value in before if value is not None]
        known_after = [value for value in after if value is not None]
        if len(known_before) < len(before) or len(known_after) < len(after):
            mean_before = fmean(known_before) if known_before else None
            mean_after = fmean(known_after) if known_after else None
            nothing = mean_before is None and mean_after is None
            verdict = Verdict.SAME if nothing else Verdict.UNCLEAR
            return Change(metric.name, metric.gate, mean_before, mean_after, None, None, verdict)
        first, second = fmean(known_before), fmean(known_after)
        ratio = second / first if first else None
        interval = None
        if metric.gate in NOISY:
            if min(len(before), len(after)) >= MIN_TIMED_RUNS:
                interval = ratio_interval(known_before, known_after)
            verdict = self._timed(metric, ratio, interval)
        else:
            verdict = self._exact(metric, known_before, known_after)
        return Change(metric.name, metric.gate, first, second, ratio, interval, verdict)

    def _timed(
        self, metric: _Metric, ratio: float | None, interval: tuple[float, float] | None
    ) -> Verdict:
        if interval is None or ratio is None or metric.name in _NOT_ALONE:
            return Verdict.UNCLEAR
        low, high = interval
        if low > 1 and ratio > 1 + self.tolerance.time:
            return Verdict.BETTER if metric.more_is_better else Verdict.WORSE
        if high < 1 and ratio < 1 / (1 + self.tolerance.time):
            return Verdict.WORSE if metric.more_is_better else Verdict.BETTER
        bound = 1 + self.tolerance.time
        return Verdict.SAME if 1 / bound < low and high < bound else Verdict.UNCLEAR

    def _exact(self, metric: _Metric, before: list[float], after: list[float]) -> Verdict:
        drift = self.tolerance.vm_steps if metric.gate == "vmsteps" and not self.same_sqlite else 0
        if min(after) > max(before) * (1 + drift):
            return Verdict.WORSE
        if max(after) * (1 + drift) < min(before):
            return Verdict.BETTER
        # A program whose runs differ among themselves says nothing where they overlap.
        steady = max(before) == min(before) and max(after) == min(after)
        return Verdict.SAME if steady or before == after else Verdict.UNCLEAR


Side = list[Mapping[str, list[Aggregate]]]


def _compare_statement(
    statement: str,
    sides: tuple[Side, Side],
    judge: _Judge,
    helpers: frozenset[Function],
    plans: PlanChange,
) -> StatementChange:
    before, after = ([run.get(statement, []) for run in side] for side in sides)
    kind = "known" if any(before) and any(after) else "gone" if any(before) else "new"
    totals = [[add_up(run) for run in side] for side in (before, after)]
    changes = []
    for metric in _STATEMENT:
        # What a run did not execute took no steps in it, and that is known.
        pair = [
            [metric.of(run) if run.calls or metric.name == "mean_ns" else 0.0 for run in side]
            for side in totals
        ]
        changes.append(judge(metric, *pair))
    return StatementChange(statement, kind, tuple(changes), _sites((before, after), helpers), plans)


def _sites(
    sides: tuple[list[list[Aggregate]], list[list[Aggregate]]], helpers: frozenset[Function]
) -> tuple[SiteChange, ...]:
    """Where executions changed most. A function's lines move between revisions, and its file's
    directory too: what is compared is its executions from all its lines; what is shown is its
    busiest line, of after if it is there.
    """
    counts: dict[Function, list[float]] = {}
    shown: dict[Function, CallSite] = {}
    for side, runs in enumerate(sides):
        busiest: dict[Function, int] = {}
        for aggregate in (a for run in runs for a in run):
            if aggregate.operation not in STATEMENT_OPERATIONS:
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
) -> tuple[StatementChange | Change, ...]:
    """What got worse, of the gates that count: whole-run metrics of time, and statements.

    A new statement counts under `counts`.
    """
    asked = frozenset(gates)
    whole = [c for c in comparison.whole if c.gate in asked and c.verdict is Verdict.WORSE]
    statements = [
        change
        for change in comparison.statements
        if ("plans" in asked and change.plans.verdict is Verdict.WORSE)
        or any(c.gate in asked and c.verdict is Verdict.WORSE for c in change.changes)
    ]
    return (*statements, *whole)


def measured_nothing(profiles: Iterable[Profile]) -> bool:
    """Whether no run executed a statement: there is nothing to compare."""
    return not any(add_up(profile.aggregates).statement_executions for profile in profiles)
