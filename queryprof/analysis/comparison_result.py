"""The changes between runs before and runs after: what a comparison finds and a report shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.plans import Steps, worse_plans


class Verdict(StrEnum):
    """How a change is judged."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNCLEAR = "unclear"


TOLERANCE = 0.05
"""Differences up to this share of the value before count as no change: of times, and of VM steps
between different versions of SQLite. Between equal versions, VM steps must be equal.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One metric on both sides.

    Attributes:
        metric: its name, the unit at the end (`database_ns`).
        gate: the group of `--fail-on` that it belongs to: counts, plans, vmsteps, io or time.
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
"""In intervals. A timeline has 512; a longer course means that the clock was set during the run."""

Course = tuple[tuple[float, float], ...]
"""A run's course: (seconds since its start, share of the time in the database then)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs before and after.

    Attributes:
        whole: metrics of whole runs; they are of executions unless named otherwise.
        statements: new ones first, then gone ones, then known ones, worst first.
        courses: of the first run of each side.
    """

    before_runs: int
    after_runs: int
    same_sqlite: bool
    whole: tuple[Change, ...]
    statements: tuple[StatementChange, ...]
    courses: tuple[Course, Course]
