"""Add up groups of aggregates (one per statement, call path and thread) for reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from math import sqrt
from typing import NamedTuple, TypeVar

from queryprof.analysis.histogram import add_histograms, percentiles
from queryprof.model import Aggregate
from queryprof.operations import FETCH_OPERATIONS, STATEMENT_OPERATIONS, UNCOUNTED

Key = TypeVar("Key", bound=Hashable)

NOTABLE_SHARE = 0.95
"""If a group's own time is a smaller share of its total time, its nested calls count as notable."""


class Totals(NamedTuple):
    """Sums over aggregates. Times are in ns; None means unknown. Like Aggregate, this is a tuple.

    Attributes:
        calls: driver calls. executions: driver calls except fetches. An execution ran a statement
            or did other work (connect, close, ...).
        self_ns: time in the calls, without nested profiled calls.
        mean_ns, p50_ns to max_ns, deviation_ns (standard deviation): per execution, including
            fetches and nested profiled calls. self_mean_ns: the mean without nested calls.
        vm_steps, full_scan_steps, automatic_index_rows, page_fetches: means per execution, from the
            executions with known SQLite counters.
        has_uncounted_rows: True if the program fetched some rows in a form that queryprof cannot
            count.
    """

    calls: int
    executions: int
    statement_executions: int
    errors: int
    rows: int
    total_ns: int
    self_ns: int
    min_call_ns: int
    max_call_ns: int
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    counted: int
    vm_steps_sum: int | None
    full_scan_steps_sum: int | None
    sorts_sum: int | None
    automatic_indexes_sum: int | None
    page_fetches: float | None
    deviation_ns: float | None
    has_uncounted_rows: bool

    @property
    def mean_ns(self) -> float | None:
        return self.total_ns / self.executions if self.executions else None

    @property
    def self_mean_ns(self) -> float | None:
        return self.self_ns / self.executions if self.executions else None

    @property
    def has_calls_inside(self) -> bool:
        """Whether nested profiled calls take a notable part of the group's time."""
        return self.self_ns < NOTABLE_SHARE * self.total_ns

    @property
    def mean_call_ns(self) -> float | None:
        return self.total_ns / self.calls if self.calls else None

    @property
    def known_rows(self) -> int | None:
        return None if self.has_uncounted_rows else self.rows

    @property
    def rows_each(self) -> float | None:
        rows = self.known_rows
        return rows / self.executions if self.executions and rows is not None else None

    @property
    def vm_steps(self) -> float | None:
        return _mean_of_known(self.vm_steps_sum, self.counted)

    @property
    def full_scan_steps(self) -> float | None:
        return _mean_of_known(self.full_scan_steps_sum, self.counted)

    @property
    def automatic_index_rows(self) -> float | None:
        return _mean_of_known(self.automatic_indexes_sum, self.counted)


def _mean_of_known(known_sum: int | None, counted: int) -> float | None:
    """Return the mean of a counter over the executions with a known value."""
    return None if known_sum is None else known_sum / counted


def add_aggregates(aggregates: Iterable[Aggregate]) -> Totals:
    """Return the totals of the aggregates. A single loop computes all totals for speed: a large
    report has hundreds of thousands of aggregates.
    """
    calls = executions = of_statements = errors = rows = total_ns = self_ns = longest_ns = 0
    counted = vm_steps = full_scan_steps = sorts = automatic_indexes = fetches = samples = 0
    shortest_call_ns: int | None = None
    longest_call_ns = 0
    is_uncounted = False
    squares = 0.0
    histograms = []
    for a in aggregates:
        count = a.count
        calls += count
        errors += a.errors
        rows += a.rows
        total_ns += a.total_ns
        self_ns += a.self_ns
        if count:
            if shortest_call_ns is None or a.min_ns < shortest_call_ns:
                shortest_call_ns = a.min_ns
            longest_call_ns = max(longest_call_ns, a.max_ns)
        counted += a.counted
        vm_steps += a.vm_steps
        full_scan_steps += a.full_scan_steps
        sorts += a.sorts
        automatic_indexes += a.automatic_indexes
        fetches += a.page_fetches
        samples += a.page_fetch_samples
        operation = a.operation
        is_uncounted = is_uncounted or operation == UNCOUNTED
        if operation not in FETCH_OPERATIONS:
            executions += count
            if operation in STATEMENT_OPERATIONS:
                of_statements += count
            longest_ns = max(longest_ns, a.execution_max_ns)
            squares += a.execution_sum_sq_ns2
            histograms.append(a.histogram)
    histogram = histograms[0] if len(histograms) == 1 else add_histograms(histograms)
    p50_ns, p95_ns, p99_ns = percentiles(histogram, (0.50, 0.95, 0.99), longest_ns)
    # Positional arguments: keywords would take three times as long.
    return Totals(
        calls,
        executions,
        of_statements,
        errors,
        rows,
        total_ns,
        self_ns,
        shortest_call_ns or 0,
        longest_call_ns,
        p50_ns,
        p95_ns,
        p99_ns,
        longest_ns if histogram else None,
        counted,
        vm_steps if counted else None,
        full_scan_steps if counted else None,
        sorts if counted else None,
        automatic_indexes if counted else None,
        fetches / samples if samples else None,
        _deviation_ns(executions, total_ns, squares),
        is_uncounted,
    )


class TotalsCache:
    """Add up groups of one profile's aggregates, each group once. In a large report, the views and
    the ranking share most groups.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Totals] = {}

    def totals_of(self, group: list[Aggregate]) -> Totals:
        """Return the totals of a group. The aggregates must live as long as this object."""
        key = tuple(map(id, group))
        totals = self._known.get(key)
        if totals is None:
            totals = self._known[key] = add_aggregates(group)
        return totals


def _deviation_ns(executions: int, total_ns: int, squares: float) -> float | None:
    """Return the standard deviation from the sums and sums of squares of whole executions."""
    if executions < 2:
        return None
    return sqrt(max(0.0, squares - total_ns * total_ns / executions) / (executions - 1))


def group_aggregates(
    aggregates: Iterable[Aggregate], key: Callable[[Aggregate], Key]
) -> Mapping[Key, list[Aggregate]]:
    """Return the aggregates by key, in the order in which the keys first appear."""
    groups: dict[Key, list[Aggregate]] = {}
    for aggregate in aggregates:
        groups.setdefault(key(aggregate), []).append(aggregate)
    return groups


def groups_with_calls(
    aggregates: Iterable[Aggregate], key: Callable[[Aggregate], Key]
) -> list[tuple[Key, list[Aggregate]]]:
    """Like group_aggregates, but without groups that have only counters and no calls."""
    groups = group_aggregates(aggregates, key)
    return [(name, group) for name, group in groups.items() if any(a.count for a in group)]


def self_ns_of(group: Iterable[Aggregate]) -> int:
    """Return the time of a group. Most rankings sort by this and need no other totals."""
    return sum([a.self_ns for a in group])


def executions_of(group: Iterable[Aggregate]) -> int:
    """Return the number of executions of a group, as in Totals.executions."""
    return sum([a.count for a in group if a.operation not in FETCH_OPERATIONS])


def _p99_ns(group: list[Aggregate]) -> float:
    return add_aggregates(group).p99_ns or 0


SORT_KEYS: dict[str, Callable[[list[Aggregate]], float]] = {
    "time": self_ns_of,
    "executions": lambda group: sum(a.count for a in group if a.operation not in FETCH_OPERATIONS),
    "max": lambda group: max(a.execution_max_ns for a in group),
    "p99": _p99_ns,
    "vmsteps": lambda group: sum(a.vm_steps for a in group),
}
"""The sort keys of a ranking; the largest value comes first."""
