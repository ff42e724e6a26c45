"""The metrics of a comparison, and the verdict on each change. Counts are compared exactly, and
times by the confidence interval of their ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from queryprof.analysis.totals import Totals
from queryprof.comparing.comparison_result import MetricChange, Verdict
from queryprof.model import Profile
from queryprof.statistics.bootstrap import ratio_interval
from queryprof.statistics.rank_sum import rank_higher_p_value

FALSE_ALARM_RATE = 0.01
"""The probability that a comparison of equal programs wrongly reports any time as changed."""

WHOLE_TESTS = 8
"""The number of independent measurements of whole runs: database, run, CPU, memory, reads, writes,
lag and stalls. All others (a mean, a rate) follow from these.
"""

MIN_TIMED_RUNS = 6
"""The fewest runs per side for a verdict on times. With 6 runs per side, chance makes all runs of
one side slower than all runs of the other side once in 924 times. With 5 runs per side, this
happens once in 252 times, which is above FALSE_ALARM_RATE / WHOLE_TESTS.
"""

NOISY_GATES = frozenset({"io", "time"})
"""Gates of metrics that vary between runs of the same program. Their changes need a statistical
test.
"""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    gate: str
    value_in: Callable[[Totals], float | None]
    more_is_better: bool = False


def _per_database_second(amount: Callable[[Totals], int]) -> Callable[[Totals], float | None]:
    return lambda totals: amount(totals) / totals.self_ns * 1e9 if totals.self_ns else None


_COUNTS = (
    Metric("executions", "counts", lambda totals: totals.statement_executions),
    Metric("rows", "counts", lambda totals: totals.rows),
    Metric("errors", "counts", lambda totals: totals.errors),
    Metric("vm_steps", "vmsteps", lambda totals: totals.vm_steps_sum),
    Metric("full_scan_steps", "vmsteps", lambda totals: totals.full_scan_steps_sum),
    Metric("sorts", "vmsteps", lambda totals: totals.sorts_sum),
    Metric("automatic_indexes", "vmsteps", lambda totals: totals.automatic_indexes_sum),
)
_TIMES = (
    Metric("database_ns", "time", lambda totals: totals.self_ns),
    Metric("mean_ns", "time", lambda totals: totals.mean_ns),
)
WHOLE = (
    *_COUNTS,
    *_TIMES,
    Metric("max_ns", "time", lambda totals: totals.max_ns),
    Metric("min_call_ns", "time", lambda totals: totals.min_call_ns if totals.calls else None),
    Metric("deviation_ns", "time", lambda totals: totals.deviation_ns),
    Metric(
        "executions_per_database_s",
        "time",
        _per_database_second(lambda totals: totals.statement_executions),
        more_is_better=True,
    ),
    Metric(
        "rows_per_database_s",
        "time",
        _per_database_second(lambda totals: totals.rows),
        more_is_better=True,
    ),
)
RUN = Metric("run_ns", "time", lambda _: None)
STATEMENT = (*_COUNTS, *_TIMES)
_METRICS_WITHOUT_VERDICT = frozenset({"max_ns", "min_call_ns", "deviation_ns"})
"""Metrics that get no verdict, because they depend on a single execution or measure the noise
itself.
"""

IO: tuple[tuple[Metric, Callable[[Profile], float | None]], ...] = (
    (
        Metric("read_bytes", "io", lambda _: None),
        lambda p: p.total("read_bytes"),
    ),
    (
        Metric("written_bytes", "io", lambda _: None),
        lambda p: p.total("written_bytes"),
    ),
)
"""Bytes that the whole processes read and wrote."""


CPU: tuple[tuple[Metric, Callable[[Profile], float | None]], ...] = (
    (
        Metric("cpu_ns", "time", lambda _: None),
        lambda p: sum(one.user_ns + one.system_ns for one in p.thread_usage),
    ),
)
"""The CPU time of all threads, with or without database calls."""

MEMORY: tuple[tuple[Metric, Callable[[Profile], float | None]], ...] = (
    (
        Metric("peak_memory_bytes", "time", lambda _: None),
        lambda p: _largest_known([one.peak_memory_bytes for one in p.processes]),
    ),
)
"""The peak memory of the largest process; None if unknown for any process, such as a killed
process.
"""

LOOPS: tuple[tuple[Metric, Callable[[Profile], float | None]], ...] = (
    (
        Metric("loop_lag_ns", "time", lambda _: None),
        lambda p: _mean(
            sum(x.beat_lag.total_ns for x in p.loops), sum(x.beat_lag.count for x in p.loops)
        ),
    ),
    (
        Metric("stall_ns", "time", lambda _: None),
        lambda p: sum(s.total_ns for x in p.loops for s in x.stalls) if p.loops else None,
    ),
)
"""Metrics of event loops: the mean lag of their heartbeats, and the time of their stalls."""


CHANGED = (Verdict.BETTER, Verdict.WORSE)


def _largest_known(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


Values = list[float | None]


@dataclass(frozen=True, slots=True)
class MetricComparer:
    """Compare the values of a metric over all runs, and judge the change.

    A time counts as changed if its means differ by more than `tolerance`, the interval of its ratio
    excludes 1, and the p-value of a rank-sum test is at most FALSE_ALARM_RATE / `tests`
    (Bonferroni's correction). Without this correction, chance would make one of many equal
    times look slower.

    Attributes:
        tests: the number of times that are judged together.
    """

    tolerance: float
    same_sqlite: bool
    tests: int = WHOLE_TESTS

    def __call__(self, metric: Metric, before: Values, after: Values) -> MetricChange:
        known_before = [value for value in before if value is not None]
        known_after = [value for value in after if value is not None]
        if len(known_before) < len(before) or len(known_after) < len(after):
            mean_before = fmean(known_before) if known_before else None
            mean_after = fmean(known_after) if known_after else None
            nothing = mean_before is None and mean_after is None
            verdict = Verdict.SAME if nothing else Verdict.UNCLEAR
            return MetricChange(
                metric.name, metric.gate, mean_before, mean_after, None, None, verdict
            )
        first, second = fmean(known_before), fmean(known_after)
        ratio = second / first if first else None
        interval = None
        if metric.gate in NOISY_GATES:
            if min(len(before), len(after)) >= MIN_TIMED_RUNS:
                interval = ratio_interval(known_before, known_after)
            verdict = self._verdict_of_times(metric, ratio, interval)
            if verdict in CHANGED and not self._is_significant(known_before, known_after):
                verdict = Verdict.UNCLEAR
        else:
            verdict = self._verdict_of_counts(metric, known_before, known_after)
        return MetricChange(metric.name, metric.gate, first, second, ratio, interval, verdict)

    def _is_significant(self, before: list[float], after: list[float]) -> bool:
        smaller, larger = (before, after) if fmean(after) > fmean(before) else (after, before)
        return rank_higher_p_value(larger, smaller) <= FALSE_ALARM_RATE / self.tests

    def _verdict_of_times(
        self, metric: Metric, ratio: float | None, interval: tuple[float, float] | None
    ) -> Verdict:
        if interval is None or ratio is None or metric.name in _METRICS_WITHOUT_VERDICT:
            return Verdict.UNCLEAR
        low, high = interval
        if low > 1 and ratio > 1 + self.tolerance:
            return Verdict.BETTER if metric.more_is_better else Verdict.WORSE
        if high < 1 and ratio < 1 / (1 + self.tolerance):
            return Verdict.WORSE if metric.more_is_better else Verdict.BETTER
        bound = 1 + self.tolerance
        return Verdict.SAME if 1 / bound < low and high < bound else Verdict.UNCLEAR

    def _verdict_of_counts(
        self, metric: Metric, before: list[float], after: list[float]
    ) -> Verdict:
        drift = self.tolerance if metric.gate == "vmsteps" and not self.same_sqlite else 0
        if min(after) > max(before) * (1 + drift):
            return Verdict.WORSE
        if max(after) * (1 + drift) < min(before):
            return Verdict.BETTER
        # If runs of one side differ from each other, overlapping sides prove neither a change nor
        # equality.
        steady = max(before) == min(before) and max(after) == min(after)
        return Verdict.SAME if steady or before == after else Verdict.UNCLEAR
