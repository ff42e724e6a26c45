"""Counters never decrease, and series never disappear, whatever is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.model.live import Activity, LoopActivity, ProcessActivity
from queryprof.telemetry import counters as module
from queryprof.telemetry.counters import LAG_BOUNDS_S, OTHER, MetricSeries, ProgramNames, SeriesKey

pytestmark = pytest.mark.once

SHOP = ProgramNames("shop", "1")


def process(
    *activities: Activity, has_ended: bool = False, loops: tuple[LoopActivity, ...] = ()
) -> ProcessActivity:
    return ProcessActivity(
        1, ("python", "app.py"), "/srv", has_ended, 10**9, activities, loops, (), *SHOP
    )


def activity(statement: str, ns: int, calls: int = 1) -> Activity:
    return Activity(statement, (), "execute", calls, ns, ns, calls, 10 * calls, calls)


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([f"S{n}" for n in range(40)]), st.integers(0, 10**9)),
            max_size=6,
        ),
        max_size=20,
    )
)
def test_nothing_goes_down_or_leaves(looks: list[list[tuple[str, int]]]) -> None:
    counters = MetricSeries()
    before: dict[SeriesKey, tuple[int, ...]] = {}
    calls = ns = 0
    for look in looks:
        counters.add([process(*(activity(name, time) for name, time in look))])
        calls += len(look)
        ns += sum(time for _, time in look)
        now = {
            key: (one.calls, one.ns, one.vm_steps, one.full_scan_steps)
            for key, one in counters.sums.items()
        }
        assert set(before) <= set(now)
        for key, values in before.items():
            assert all(new >= old for new, old in zip(now[key], values, strict=True))
        assert sum(one.calls for one in counters.sums.values()) == calls
        assert sum(one.ns for one in counters.sums.values()) == ns
        before = now


@pytest.mark.parametrize(("ns", "is_shown"), [(100, True), (99, False)])
def test_a_hundredth_gets_a_series(ns: int, is_shown: bool) -> None:
    counters = MetricSeries()
    counters.add([process(activity("large", 10_000 - ns), activity("small", ns))])
    assert (SeriesKey(SHOP, "small") in counters.sums) == is_shown
    assert (SeriesKey(SHOP, OTHER) in counters.sums) != is_shown


def test_what_it_did_before_stays_in_the_others() -> None:
    counters = MetricSeries()
    counters.add([process(activity("large", 10**6), activity("rises", 10))])
    counters.add([process(activity("rises", 10**6))])
    assert counters.sums[SeriesKey(SHOP, OTHER)].ns == 10
    assert counters.sums[SeriesKey(SHOP, "rises")].ns == 10**6


def test_there_are_at_most_so_many_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 3)
    monkeypatch.setattr(module, "MAX_UNPUBLISHED_STATEMENTS", 10)
    counters = MetricSeries()
    for number in range(50):
        counters.add([process(activity(f"S{number}", 10**6))])
    assert len(counters.sums) == 4
    assert sum(one.calls for one in counters.sums.values()) == 50
    assert len(counters._hidden_ns) <= 11


def test_delays_are_in_their_bounds() -> None:
    from queryprof.core import _core

    counters = MetricSeries()
    lags = {_core.histogram_bucket(int(bound * 0.9e9)): 1 for bound in LAG_BOUNDS_S}
    lags[_core.histogram_bucket(10**11)] = 1
    loop = LoopActivity("asyncio", "MainThread", lags, 10**11, 0)
    counters.add([process(loops=(loop,))])
    counters.add([process(loops=(loop,))])
    found = counters.lags[SHOP]
    assert found.counts == [2] * (len(LAG_BOUNDS_S) + 1)
    expected = 2 * (sum(LAG_BOUNDS_S) * 0.9e9 + 10**11)
    assert found.sum_ns == pytest.approx(expected, rel=0.04)


def test_processes_that_run_are_counted() -> None:
    counters = MetricSeries()
    counters.add([process(), process()])
    assert counters.living == {SHOP: 2}
    counters.add([process(has_ended=True)])
    assert counters.living == {SHOP: 0}


def test_without_names_the_program_is_the_service() -> None:
    counters = MetricSeries()
    counters.add([ProcessActivity(1, ("python", "app.py"), "", False, 1, (activity("S", 1),), ())])
    assert [key.program for key in counters.sums] == [ProgramNames("app", "")]
