"""Compare two versions of a service: find regressions on the hosts of the later version.

Each host is one observation. The ratio of two versions is the ratio of the geometric means over
their hosts. The confidence interval of the ratio is Welch's, for unequal variances (B. L. Welch,
"The generalization of 'Student's' problem when several different population variances are
involved", Biometrika 34, 1947).

If many statements are compared, each interval is widened (C. E. Bonferroni's inequality), so that
in 19 of 20 comparisons all intervals are right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, NamedTuple

from queryprof.errors import TraceError
from queryprof.fleet.duck import Engine, Selection
from queryprof.fleet.question_texts import FASTER, MORE_STEPS, SLOWER
from queryprof.statistics.rank_sum import rank_sum_p_value
from queryprof.statistics.student import t_quantile

MIN_HOSTS = 8
"""Minimum number of hosts per version for comparing times."""

TOO_WIDE_RATIO = 1.5
"""If an interval extends beyond this ratio, the hosts differ too much for a verdict."""

CONFIDENCE = 0.95
GATES = ("time", "vmsteps", "counts", "plans", "findings")

Record = Mapping[str, Any]


class RatioInterval(NamedTuple):
    """The ratio of a figure between two versions, and its confidence interval at level
    CONFIDENCE.
    """

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FleetComparison:
    """The differences between two versions. The most expensive statements come first.

    Attributes:
        slower, faster: statements whose times changed with statistical significance.
        more_steps: statements that take more VM steps per execution.
        requests: statements that the later version runs more often per span.
        plans, findings: plans and findings that are new in the later version.
        statements: statements that only one version has.
        unclear: number of statements on too few hosts, or on hosts that differ too much.
        same: number of all other compared statements.
        unchecked_gates: gates that cannot be checked, with the reason.
    """

    before: str
    after: str
    slower: Sequence[Record]
    faster: Sequence[Record]
    more_steps: Sequence[Record]
    requests: Sequence[Record]
    plans: Sequence[Record]
    findings: Sequence[Record]
    statements: Sequence[Record]
    unclear: int
    same: int
    unchecked_gates: Mapping[str, str]

    def worse(self, gates: Sequence[str]) -> dict[str, int]:
        """Return the number of regressions for each gate that has any."""
        found = {
            "time": self.slower,
            "vmsteps": self.more_steps,
            "counts": self.requests,
            "plans": self.plans,
            "findings": self.findings,
        }
        return {gate: len(found[gate]) for gate in gates if found.get(gate)}


def interval(row: Record, figure: str, statements: int) -> RatioInterval | None:
    """Return the ratio of a figure between two versions; None if a version has fewer than MIN_HOSTS
    hosts.

    Args:
        row: a row of the question `compare`. figure: "time" or "step". statements: the number of
            compared statements.
    """
    sides = []
    for side in ("before", "after"):
        hosts = row[f"{figure}_hosts_{side}"] if figure == "step" else row[f"hosts_{side}"]
        if hosts < MIN_HOSTS or row[f"{figure}_mean_{side}"] is None:
            return None
        sides.append((hosts, row[f"{figure}_mean_{side}"], row[f"{figure}_variance_{side}"] or 0.0))
    (n, mean, variance), (m, later_mean, later_variance) = sides
    errors = variance / n, later_variance / m
    both = sum(errors)
    between = errors[0] ** 2 / (n - 1) + errors[1] ** 2 / (m - 1)
    degrees = both**2 / between if between else float("inf")
    confidence = 1 - (1 - CONFIDENCE) / max(statements, 1)
    half = t_quantile(round(degrees, 2), confidence) * sqrt(both)
    log = later_mean - mean
    return RatioInterval(exp(log), exp(log - half), exp(log + half))


def is_sure(row: Record, figure: str, kind: str, statements: int) -> bool:
    """Return whether a rank-sum test over the hosts confirms the change."""
    prefix = "step_hosts" if kind == "step" else "hosts"
    before, after = row[f"{prefix}_before"], row[f"{prefix}_after"]
    rank_sum = row[f"{figure}_rank_sum"]
    limit = (1 - CONFIDENCE) / 2 / max(statements, 1)
    return rank_sum is not None and rank_sum_p_value(rank_sum, after, before) < limit


def _is_beyond(times: RatioInterval) -> bool:
    return times.low > SLOWER or times.high < FASTER


def compare_versions(
    engine: Engine, selection: Selection, before: str, after: str
) -> FleetComparison:
    """Compare two versions of a service. Raises TraceError if a version is unknown."""
    known = {one["version"] for one in engine.answer("names", selection).records()}
    for version in (before, after):
        if version not in known:
            names = ", ".join(sorted(filter(None, known))) or "none with a name"
            raise TraceError(f"no version {version!r}; known versions: {names}")
    sides = {"before": before, "after": after}

    def answer(question: str) -> list[dict[str, Any]]:
        return engine.answer(question, selection, **sides).records()

    compared = answer("compare")
    slower, faster, more_steps = [], [], []
    unclear = 0
    many = len(compared)
    for row in compared:
        times, steps = interval(row, "time", many), interval(row, "step", many)
        judged = {**row, **(times._asdict() if times else {})}
        if times and times.low > SLOWER and is_sure(row, "slower", "time", many):
            slower.append(judged)
        elif times and times.high < FASTER and is_sure(row, "faster", "time", many):
            faster.append(judged)
        elif not times or times.high > TOO_WIDE_RATIO or _is_beyond(times):
            unclear += 1
        if steps and steps.low > MORE_STEPS and is_sure(row, "step", "step", many):
            more_steps.append(judged)
    few = unclear == len(compared)
    unknown = _unknown_gates(engine, selection, (before, after), few, known)
    return FleetComparison(
        before,
        after,
        slower,
        faster[::-1],
        more_steps,
        () if "counts" in unknown else answer("requests"),
        answer("new_plans"),
        answer("new_findings"),
        answer("new_statements"),
        unclear,
        len(compared) - len(slower) - len(faster) - unclear,
        unknown,
    )


def _unknown_gates(
    engine: Engine,
    selection: Selection,
    versions: tuple[str, str],
    few: bool,
    of_sums: Collection[str | None],
) -> dict[str, str]:
    """Return the gates that cannot be checked, each with the reason."""
    found: dict[str, str] = {}
    if few:
        why = f"fewer than {MIN_HOSTS} hosts with each version, or hosts that differ too much"
        found |= dict.fromkeys(("time", "vmsteps"), why)
    known = engine.answer("tables", selection).records()
    for gate, table in (("counts", "span"), ("plans", "plan")):
        there = {one["version"] for one in known if one["kind"] == table}
        if not there.issuperset(versions):
            found[gate] = f"no {table}s of both versions (a merged trace has none)"
        elif table == "span" and None in there and None not in of_sums:
            found[gate] = "some spans combine several versions (of a merged trace)"
    return found
