"""Sum the activity of running processes as counters that never decrease, in series that never end.

A statement gets its own series when it has taken 1% of the total time so far. Its earlier work
stays in the series OTHER. Moving the earlier work would make OTHER decrease, and start the new
counter with a jump.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from queryprof.analysis.histogram import bucket_bounds
from queryprof.model.live import ProcessActivity
from queryprof.report.inert import escape_control_characters

MIN_STATEMENT_SHARE = 0.01
MAX_SERIES = 200
"""Maximum number of statements with their own series, over all services."""

MAX_UNPUBLISHED_STATEMENTS = 10_000
"""Maximum number of statements (per program) whose time is tracked. Above this number, only the
half with the most time is kept, and all other statements start again from 0.
"""

OTHER = "(other)"
LAG_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class ProgramNames(NamedTuple):
    """The service and version of a program, with control characters escaped."""

    service: str
    version: str


class SeriesKey(NamedTuple):
    """The key of a series: a program and one of its statements, or OTHER."""

    program: ProgramNames
    statement: str


@dataclass(slots=True)
class CallSums:
    """Sums over driver calls. VM steps and full-scan steps cover only executions with known
    counters.
    """

    calls: int = 0
    ns: int = 0
    vm_steps: int = 0
    full_scan_steps: int = 0


@dataclass(slots=True)
class LoopLags:
    """A histogram of the lag of event loops.

    Attributes:
        counts: the number of lags in each bucket. LAG_BOUNDS_S has the upper bounds of the buckets;
            the last bucket is for longer lags.
        sum_ns: the approximate sum of the lags, from the middles of their recorded buckets.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(LAG_BOUNDS_S) + 1))
    sum_ns: int = 0


class MetricSeries:
    """All series, summed up since the start of the export.

    Attributes:
        sums: the sums of each series.
        lags: the lag of each program that has an event loop.
        living: the number of running processes of each program at the last `add`.
    """

    def __init__(self) -> None:
        self.sums: dict[SeriesKey, CallSums] = {}
        self.lags: dict[ProgramNames, LoopLags] = {}
        self.living: dict[ProgramNames, int] = {}
        self._hidden_ns: dict[SeriesKey, int] = {}
        self._all_ns = 0
        self._shown: set[str] = set()

    def add(self, processes: Iterable[ProcessActivity]) -> None:
        """Add the activity of processes since the last `add`."""
        added: dict[SeriesKey, CallSums] = {}
        self.living = dict.fromkeys(self.living, 0)
        for process in processes:
            service = process.service or _program_name(process.command)
            program = ProgramNames(
                escape_control_characters(service), escape_control_characters(process.version)
            )
            self.living[program] = self.living.get(program, 0) + (not process.has_ended)
            for one in process.activities:
                sums = added.setdefault(SeriesKey(program, one.statement), CallSums())
                sums.calls += one.calls
                sums.ns += one.self_ns
                sums.vm_steps += one.vm_steps
                sums.full_scan_steps += one.full_scan_steps
            for loop in process.loops:
                lags = self.lags.setdefault(program, LoopLags())
                for bucket, count in loop.lags.items():
                    low, high = bucket_bounds(bucket)
                    middle_ns = (low + high - 1) // 2
                    at = sum(middle_ns > bound * 1e9 for bound in LAG_BOUNDS_S)
                    lags.counts[at] += count
                    lags.sum_ns += count * middle_ns
        self._add_series(added)
        for key, sums in added.items():
            its = self.sums.setdefault(
                key if key.statement in self._shown else SeriesKey(key.program, OTHER), CallSums()
            )
            its.calls += max(0, sums.calls)
            its.ns += max(0, sums.ns)
            its.vm_steps += max(0, sums.vm_steps)
            its.full_scan_steps += max(0, sums.full_scan_steps)

    def _add_series(self, added: dict[SeriesKey, CallSums]) -> None:
        """Start a series for each statement that has reached MIN_STATEMENT_SHARE."""
        for key, sums in added.items():
            self._all_ns += sums.ns
            self._hidden_ns[key] = self._hidden_ns.get(key, 0) + sums.ns
        by_statement: dict[str, int] = {}
        for key, ns in self._hidden_ns.items():
            by_statement[key.statement] = by_statement.get(key.statement, 0) + ns
        largest_first = sorted(by_statement, key=lambda one: (-by_statement[one], one))
        for statement in largest_first:
            if (
                len(self._shown) == MAX_SERIES
                or by_statement[statement] < MIN_STATEMENT_SHARE * self._all_ns
            ):
                break
            self._shown.add(statement)
        if len(self._hidden_ns) > MAX_UNPUBLISHED_STATEMENTS:
            kept = set(largest_first[: MAX_UNPUBLISHED_STATEMENTS // 2])
            self._hidden_ns = {k: ns for k, ns in self._hidden_ns.items() if k.statement in kept}


def _program_name(command: tuple[str, ...]) -> str:
    from queryprof.recorder.autoload import program_named_in

    return program_named_in(command)
