"""SteadySearch comes near the best number of workers in spite of dips. Regret in % of the best
fixed number, mean of 60 runs of 240 intervals with dips: after interval 40, and (of the whole run).

LinearSearch: flat 0.0 (0.0), writer 1.4 (3.5), readers 1.1 (2.2), rising 2.0 (4.4); ends after 16.
HillClimbing: flat 0.0 (0.0), writer 5.9 (9.8), readers 2.2 (2.5), rising 4.6 (4.5); never ends.
SteadyWorkerSearch: flat 0.0 (0.0), writer 1.2 (2.9), readers 0.8 (2.8), rising 1.5 (5.1); ends after 35.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import pytest
from worker_searches import HillClimbing, LinearSearch

from queryprof.statistics.worker_search import SteadyWorkerSearch, WorkerSearch

pytestmark = pytest.mark.slow

LOWEST, HIGHEST = 1, 16
RUNS = 60
INTERVALS = 240
SEARCHING = SteadyWorkerSearch.MAX_INTERVALS
NOISE = 0.05
"""The relative deviation of operations per interval."""

Program = Callable[[int], float]
"""The mean operations of an interval, by the number of workers."""


def flat(workers: int) -> float:
    return 5000


def writer(workers: int) -> float:
    """Return a program with one writer at a time: more workers soon only wait for its lock."""
    return {1: 3000, 2: 4200, 3: 4300}.get(workers, 4300 * 0.93 ** (workers - 3))


def readers(workers: int) -> float:
    """Return N. Gunther's law of scalability, with its peak at 10 workers."""
    return 1000 * workers / (1 + 0.03 * (workers - 1) + 0.01 * workers * (workers - 1))


def rising(workers: int) -> float:
    return 1000 * workers / (1 + 0.05 * (workers - 1))


PROGRAMS: tuple[Program, ...] = (flat, writer, readers, rising)
SEARCHES: tuple[type, ...] = (LinearSearch, HillClimbing, SteadyWorkerSearch)


@dataclass(frozen=True)
class Dips:
    """Intervals that lose half of their operations: their share, and how many are in a row."""

    share: float
    length: int = 1


NONE, SINGLE, BURSTS = Dips(0), Dips(0.1), Dips(0.1, length=3)


@dataclass(frozen=True)
class Outcome:
    """Regrets are shares; `settled` is the number of intervals until the search ends."""

    regret: float
    whole_regret: float
    settled: int | None


def run(search: WorkerSearch, program: Program, dips: Dips, seed: int) -> Outcome:
    draw = random.Random(seed)
    most = max(program(workers) for workers in range(LOWEST, HIGHEST + 1))
    regrets: list[float] = []
    settled = None
    left = 0
    for interval in range(INTERVALS):
        if search.is_settled and settled is None:
            settled = interval
        if not left and draw.random() < dips.share / dips.length:
            left = dips.length
        regrets.append(1 - program(search.workers) / most)
        operations = program(search.workers) * max(draw.gauss(1, NOISE), 0)
        search.observe(operations / 2 if left else operations)
        left = max(left - 1, 0)
    return Outcome(fmean(regrets[SEARCHING:]), fmean(regrets), settled)


@cache
def outcomes(kind: type, program: Program, dips: Dips) -> list[Outcome]:
    return [run(kind(LOWEST, HIGHEST), program, dips, seed) for seed in range(RUNS)]


def mean_regret(kind: type, program: Program, dips: Dips) -> float:
    return fmean(outcome.regret for outcome in outcomes(kind, program, dips))


@pytest.mark.parametrize("dips", [NONE, SINGLE, BURSTS], ids=["no dips", "dips", "bursts"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_steady_search_is_near_the_best(program: Program, dips: Dips) -> None:
    assert mean_regret(SteadyWorkerSearch, program, dips) < 0.05


@pytest.mark.parametrize("dips", [SINGLE, BURSTS], ids=["dips", "bursts"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_steady_search_is_no_worse_than_the_others(program: Program, dips: Dips) -> None:
    steady = mean_regret(SteadyWorkerSearch, program, dips)
    assert steady <= mean_regret(LinearSearch, program, dips)
    assert steady <= mean_regret(HillClimbing, program, dips)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_time_to_settle(program: Program) -> None:
    assert {o.settled for o in outcomes(LinearSearch, program, SINGLE)} == {16}
    assert {o.settled for o in outcomes(HillClimbing, program, SINGLE)} == {None}
    steady = [o.settled for o in outcomes(SteadyWorkerSearch, program, SINGLE)]
    assert all(settled is not None and settled <= SEARCHING for settled in steady)


def table() -> str:
    """Return the lines of this module's docstring."""
    lines = []
    for kind in SEARCHES:
        cells = []
        for program in PROGRAMS:
            found = outcomes(kind, program, SINGLE)
            after = fmean(o.regret for o in found) * 100
            whole = fmean(o.whole_regret for o in found) * 100
            cells.append(f"{program.__name__} {after:.1f} ({whole:.1f})")
        settled = [o.settled for p in PROGRAMS for o in outcomes(kind, p, SINGLE) if o.settled]
        ends = f"ends after {fmean(settled):.0f}" if settled else "never ends"
        lines.append(f"{kind.__name__}: {', '.join(cells)}; {ends}.")
    return "\n".join(lines)


def test_the_table_is_what_is_measured() -> None:
    assert table() in (__doc__ or "")
