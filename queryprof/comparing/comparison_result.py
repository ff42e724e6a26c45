"""The changes between runs before and after: the result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.plans import Steps, worse_plans


class Verdict(StrEnum):
    """Whether a change is an improvement or a regression."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNCLEAR = "unclear"


TOLERANCE = 0.05
"""The largest relative difference that counts as no change, for times, and for VM steps of
different versions of SQLite. With the same version, VM steps must be equal.
"""


@dataclass(frozen=True, slots=True)
class MetricChange:
    """The value of one metric before and after a change, and the verdict.

    Attributes:
        metric: the metric's name, which ends with the unit if there is one (`database_ns`).
        gate: the metric's group for `--fail-on`: counts, vmsteps, io or time.
        before, after: means over the runs; None if unknown.
        ratio: after / before; None if unknown or if `before` is 0.
        interval: the 95% interval of the ratio; only for timed metrics of several runs.
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
    """How often a call site executes a statement per run, before and after."""

    site: CallSite
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The distinct plans of a statement before and after. A side without known plans is empty."""

    before: tuple[Steps, ...]
    after: tuple[Steps, ...]

    @property
    def verdict(self) -> Verdict:
        if worse_plans(self.before, self.after):
            return Verdict.WORSE
        return Verdict.BETTER if worse_plans(self.after, self.before) else Verdict.SAME


@dataclass(frozen=True, slots=True)
class StatementChange:
    """The changes of one statement between the runs before and after.

    Attributes:
        kind: new, gone or known.
        sites: the call sites whose executions increased most, with their lines in the runs after,
            if possible.
    """

    statement: str
    kind: str
    changes: tuple[MetricChange, ...]
    sites: tuple[SiteChange, ...]
    plans: PlanChange

    @property
    def verdict(self) -> Verdict:
        """WORSE if a metric or the plan got worse; else BETTER, UNCLEAR or SAME, in this order."""
        verdicts = {self.plans.verdict, *(change.verdict for change in self.changes)}
        for verdict in (Verdict.WORSE, Verdict.BETTER, Verdict.UNCLEAR):
            if verdict in verdicts:
                return verdict
        return Verdict.SAME


MAX_COURSE = 4096
"""The maximum number of intervals in a course. A timeline has 512; a longer course means that
someone set the clock during the run.
"""

Course = tuple[tuple[float, float], ...]
"""A run's database load over time: pairs of (seconds since the start, share of time in the
database).
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of runs before with runs after.

    Attributes:
        whole: the changes in the metrics of whole runs.
        statements: new, then gone, then known statements, worst first.
        courses: the course of the first run of each side.
    """

    before_runs: int
    after_runs: int
    same_sqlite: bool
    whole: tuple[MetricChange, ...]
    statements: tuple[StatementChange, ...]
    courses: tuple[Course, Course]
