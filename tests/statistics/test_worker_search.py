"""Each search for the number of workers behaves as documented."""

from __future__ import annotations

import io
from math import inf, nan

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worker_searches import HillClimbing, LinearSearch

from conftest import EXAMPLES
from queryprof.report.terminal.tuning import print_workers
from queryprof.statistics.throughput import WorkersResult
from queryprof.statistics.worker_search import SteadyWorkerSearch, WorkerSearch

pytestmark = pytest.mark.once

SEARCHES = (LinearSearch, HillClimbing, SteadyWorkerSearch)


def asked(search: WorkerSearch, *operations: float) -> list[int]:
    """Return the numbers of workers that the search requests. The last one follows all
    observations.
    """
    numbers = [search.workers]
    for figure in operations:
        search.observe(figure)
        numbers.append(search.workers)
    return numbers


def settle(search: WorkerSearch, operations: list[float]) -> int:
    """Return the number of intervals until the search settles, without noise."""
    for interval in range(SteadyWorkerSearch.MAX_INTERVALS + 1):
        if search.is_settled:
            return interval
        search.observe(operations[search.workers - 1])
    raise AssertionError("not settled")


def test_the_linear_search_tries_each_number_once() -> None:
    search = LinearSearch(4, 16, start=8)
    assert asked(search, 10, 30, 50, 20) == [8, 7, 6, 5, 4]
    assert (search.best, search.is_settled) == (6, False)
    assert asked(search, 40) == [4, 6]
    assert (search.best, search.is_settled) == (6, True)
    assert asked(search, 0, 99) == [6, 6, 6]


def test_the_linear_search_starts_at_the_top_unless_told() -> None:
    assert LinearSearch(1, 16).workers == 16
    with pytest.raises(ValueError, match="start of 17 workers is not from 1 to 16"):
        LinearSearch(1, 16, start=17)


def test_the_linear_search_believes_a_dip() -> None:
    search = LinearSearch(1, 4)
    assert asked(search, 70, 100 / 2, 80, 60) == [4, 3, 2, 1, 2]


def test_hill_climbing_goes_on_while_operations_do_not_fall() -> None:
    assert asked(HillClimbing(1, 8), 10, 20, 20, 30) == [8, 7, 6, 5, 4]


def test_hill_climbing_goes_back_when_operations_fall() -> None:
    """It continues in the other direction if that is better than the interval before."""
    assert asked(HillClimbing(1, 8), 10, 20, 15, 20, 10, 20) == [8, 7, 6, 7, 8, 7, 6]


def test_hill_climbing_turns_round_at_a_bound() -> None:
    search = HillClimbing(2, 4)
    assert asked(search, 1, 2, 3, 4, 5, 6) == [4, 3, 2, 3, 4, 3, 2]
    assert asked(search, 3) == [2, 3]
    assert (search.best, search.is_settled) == (3, False)


def test_the_steady_search_measures_a_grid_twice() -> None:
    """It goes up, then down, with larger steps for more workers, and repeats no number at once."""
    search = SteadyWorkerSearch(1, 16)
    up = [1, 2, 3, 5, 7, 11, 16]
    assert asked(search, *range(1, 8), *range(6, 0, -1)) == [*up, 11, 7, 5, 3, 2, 1, 16]


def test_the_steady_search_repeats_a_dip() -> None:
    """The dip is at two workers, the best number. The linear search would have believed it."""
    search = SteadyWorkerSearch(1, 3)
    assert asked(search, 70, 50, 90, 101, 71, 91) == [1, 2, 3, 2, 1, 3, 2]
    search.observe(99)
    while not search.is_settled:
        search.observe({1: 70, 2: 100, 3: 90}[search.workers])
    assert search.best == 2


def test_the_steady_search_prefers_fewer_of_equal_workers() -> None:
    search = SteadyWorkerSearch(1, 16)
    assert settle(search, [100.0] * 16) <= 40
    assert search.workers == search.best == 1


def test_the_curve_has_all_observations() -> None:
    search = SteadyWorkerSearch(1, 2)
    assert SteadyWorkerSearch(1, 2).curve == ()
    asked(search, 100, 200)
    assert [p.half_width for p in search.curve] == [None, None]
    asked(search, 105, 210)
    one, two = search.curve
    assert [(p.workers, p.operations, p.intervals) for p in (one, two)] == [
        (1, 102.5, 2),
        (2, 205, 2),
    ]
    assert one.half_width is not None
    assert two.half_width == pytest.approx(2 * one.half_width)


@st.composite
def single_peaks(draw: st.DrawFn) -> list[float]:
    """Operations by workers: they rise by 1% or more up to some number, then fall likewise."""
    factors = st.floats(1.01, 2)
    rises = draw(st.lists(factors, max_size=8))
    falls = draw(st.lists(factors, max_size=8))
    operations = [100.0]
    for factor in rises:
        operations.append(operations[-1] * factor)
    for factor in falls:
        operations.append(operations[-1] / factor)
    return operations


@settings(max_examples=EXAMPLES, deadline=None)
@given(single_peaks())
def test_without_noise_the_steady_search_finds_the_peak(operations: list[float]) -> None:
    """It may find fewer workers with at most 2% less."""
    search = SteadyWorkerSearch(1, len(operations))
    assert settle(search, operations) <= SteadyWorkerSearch.MAX_INTERVALS
    assert operations[search.best - 1] >= max(operations) * 0.98
    assert search.best - 1 <= operations.index(max(operations))


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.sampled_from(SEARCHES),
    st.integers(1, 64),
    st.integers(0, 64),
    st.lists(st.one_of(st.just(0.0), st.floats(0, 1e9)), max_size=60),
)
@example(SteadyWorkerSearch, 1, 1, [0.0, 0.0, 5e-324])  # half of it is 0
def test_searches_stay_within_their_bounds(
    kind: type, lowest: int, more: int, operations: list[float]
) -> None:
    """This holds for any observations, and the steady search ends in time."""
    search: WorkerSearch = kind(lowest, lowest + more)
    for figure in operations:
        assert lowest <= search.workers <= lowest + more
        search.observe(figure)
        assert lowest <= search.best <= lowest + more
        assert not search.is_settled or search.workers == search.best
    if kind is SteadyWorkerSearch and len(operations) >= SteadyWorkerSearch.MAX_INTERVALS:
        assert search.is_settled


@pytest.mark.parametrize("kind", SEARCHES)
def test_one_number_needs_no_search(kind: type) -> None:
    search: WorkerSearch = kind(3, 3)
    assert asked(search, 5, 4, 6) == [3, 3, 3, 3]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("bounds", [(0, 4), (5, 4), (-1, -1)])
def test_impossible_bounds_are_refused(kind: type, bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="need 1 <= lowest <= highest"):
        kind(*bounds)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("operations", [-1, nan, inf])
def test_impossible_operations_are_refused(kind: type, operations: float) -> None:
    with pytest.raises(ValueError, match="need a number from 0"):
        kind(1, 4).observe(operations)


def test_a_number_that_is_not_certainly_faster_is_not_called_the_best() -> None:
    close = (WorkersResult(1, 195.0, 65.0, 8), WorkersResult(2, 243.0, 81.0, 8))
    apart = (WorkersResult(1, 195.0, 5.0, 8), WorkersResult(2, 243.0, 8.0, 8))
    for points, expected in ((close, "not certain"), (apart, "2")):
        out = io.StringIO()
        print_workers(points, 2, out)
        assert f"Best number of workers: {expected}" in out.getvalue()
