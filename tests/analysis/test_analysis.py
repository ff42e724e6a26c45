"""Rankings, percentiles and call sites, on profiles made by hand."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, process, profile_of
from hypothesis import given
from hypothesis import strategies as st

from queryprof.analysis.histogram import bucket_bounds, percentile
from queryprof.analysis.overview import overview_of
from queryprof.analysis.report import Report
from queryprof.analysis.totals import add_aggregates
from queryprof.core._core import histogram_bucket
from queryprof.model import Distribution, Profile, Span

pytestmark = pytest.mark.once


@given(st.integers(0, 2**43 - 1))
def test_buckets_hold_what_the_core_puts_there(ns: int) -> None:
    """The core and the analysis use the same scale, and a bucket's middle is within 4%."""
    low, high = bucket_bounds(histogram_bucket(ns))
    assert low <= ns < high
    assert abs((low + high - 1) // 2 - ns) <= max(0.04 * ns, 0)


@given(st.lists(st.integers(0, 10**10), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_are_right_to_4_percent(durations: list[int], share: float) -> None:
    """The reference is the nearest-rank percentile of the durations themselves."""
    histogram: dict[int, int] = {}
    for ns in durations:
        histogram[histogram_bucket(ns)] = histogram.get(histogram_bucket(ns), 0) + 1
    rank = max(1, -(-len(durations) * share // 1))
    exact = sorted(durations)[int(rank) - 1]
    found = percentile(histogram, share, max(durations))
    assert found is not None
    assert abs(found - exact) <= 0.04 * exact


def test_percentile_of_nothing_is_unknown() -> None:
    """Without executions a percentile is unknown, not 0."""
    assert percentile({}, 0.5, 0) is None


def test_the_vital_few_are_the_smallest_set_of_80_percent() -> None:
    """The largest are taken first, until they reach 80% of the time."""
    ranking = Report(
        profile_of(*(aggregate(f"S{n}", ns=ns) for n, ns in enumerate([50, 5, 25, 15, 5])))
    ).ranking
    assert [b.statement for b in ranking.bottlenecks[: ranking.vital]] == ["S0", "S2", "S3"]
    assert [round(b.cumulative_share, 2) for b in ranking.bottlenecks] == [
        0.5,
        0.75,
        0.9,
        0.95,
        1.0,
    ]


def test_fetches_are_ranked_with_their_statement() -> None:
    """One bottleneck has the time of the execute and of the fetches, and counts executions."""
    ranking = Report(
        profile_of(aggregate("S", ns=10), aggregate("S", ns=90, operation="next", count=1000))
    ).ranking
    (bottleneck,) = ranking.bottlenecks
    assert (bottleneck.totals.executions, bottleneck.totals.self_ns) == (1, 100)
    assert bottleneck.totals.mean_ns == 100


@pytest.mark.parametrize("sort", ["time", "executions", "max", "p99", "vmsteps"])
def test_sort_keys(sort: str) -> None:
    """Every sort key puts the largest first."""
    profile = profile_of(
        aggregate("A", ns=1000, count=1), aggregate("B", ns=2000, count=100), aggregate("C", ns=10)
    )
    first = {"time": "B", "executions": "B", "max": "A", "p99": "A", "vmsteps": "B"}[sort]
    assert Report(profile, sort).ranking.bottlenecks[0].statement == first


def test_views_add_up_to_the_whole() -> None:
    """The rows of every view add up to the total time."""
    profile = profile_of(
        aggregate("A", span="x"), aggregate("A", operation="next"), aggregate("B", span="y")
    )
    for dimension in ("statement", "site", "operation", "thread", "span"):
        view = Report(profile).view(dimension)
        assert statistics.fsum(row.share for row in view.rows) == pytest.approx(1)
        assert sum(row.totals.self_ns for row in view.rows) == 300


def test_the_overview_lists_what_is_unknown() -> None:
    """Killed processes, folded statements, lost counters and estimates are cautions."""
    profile = Profile(
        (
            process(
                clean_end=False,
                folded_statements=7,
                lost_counters=2,
                rows_estimated=True,
                counters_off="no",
                clock_tick_ns=41.7,
                unmeasured=("pymysql",),
            ),
            process(2, files_off="not its own"),
        ),
        (),
    )
    cautions = " ".join(overview_of(profile).cautions)
    for word in (
        "process 101 has no recorded end",
        "`queryprof last` shows the last calls",
        "7 executions are grouped as (other)",
        "of 2 executions are unknown",
        "unknown: no",
        "are estimates",
        "ticks every 42 ns",
        "not measured: pymysql",
        "file work and locks are unknown: not its own",
    ):
        assert word in cautions
    assert overview_of(profile_of(aggregate("S"))).cautions == ()


def test_spans_that_never_end_are_a_caution() -> None:
    """Only spans that end are counted: a WSGI iterable that nothing closes ends none."""
    profile = profile_of(aggregate("S", span="GET /teams"), aggregate("S", span="GET /"))
    (caution,) = overview_of(profile).cautions
    assert "spans named GET /, GET /teams never ended" in caution
    ended = Span("GET /", 1, 0, 0, 0, 0, Distribution(), Distribution(), (), {})
    (caution,) = overview_of(replace(profile, spans=(ended,))).cautions
    assert "spans named GET /teams never ended" in caution


def test_the_vital_few_say_what_they_make_up() -> None:
    """The vital few make up at least 80%, and may make up much more."""
    ranking = Report(profile_of(aggregate("A", ns=993), aggregate("B", ns=7))).ranking
    assert (ranking.vital, ranking.vital_share) == (1, 0.993)


def test_the_mean_is_of_what_the_percentiles_are_of() -> None:
    """Both are of whole executions, including the queries made inside them. Their own part is shown
    separately.
    """
    nested = aggregate("S", ns=4000, count=2)._replace(self_ns=40)
    totals = add_aggregates([nested])
    assert (totals.mean_ns, totals.self_mean_ns, totals.p50_ns) == (2000, 20, totals.max_ns)
    assert totals.has_calls_inside
    assert not add_aggregates([aggregate("S", ns=4000, count=2)]).has_calls_inside
