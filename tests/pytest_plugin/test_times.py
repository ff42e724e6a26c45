"""Find tests that are slower than their earlier runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from queryprof.pytest_plugin.times import KEY, MIN_RUNS, TestTimes

pytestmark = pytest.mark.once

MS = 1_000_000


def times(*known_ms: int) -> TestTimes:
    kept = {KEY: {"test": [one * MS for one in known_ms]}}
    return TestTimes(SimpleNamespace(cache=SimpleNamespace(get=kept.get)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("longest_ms", "now_ms", "is_slower"),
    [(1, 11, False), (1, 12, True), (100, 150, False), (100, 151, True)],
)
def test_it_must_be_longer_by_half_and_by_10_ms(
    longest_ms: int, now_ms: int, is_slower: bool
) -> None:
    known = times(*[1] * (MIN_RUNS - 1), longest_ms)
    assert known.slower_than("test", now_ms * MS) == (longest_ms * MS if is_slower else None)


def test_a_few_runs_are_not_enough() -> None:
    assert times(*[1] * (MIN_RUNS - 1)).slower_than("test", 1000 * MS) is None
