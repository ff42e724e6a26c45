"""An execution with far more rows than the others is not slow by chance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from findings.line_profiles import MS, READ, SITE, findings, loop, profile

from queryprof.core._core import histogram_bucket
from queryprof.model import Exemplar, Profile, Thread

pytestmark = pytest.mark.once

ROWS = 1000


def skewed(rows: int, left_out_ms: int, first_ms: int = 60) -> Profile:
    """Return 100 executions: the first takes 60 ms and returns most of the rows."""
    driver, time = loop(READ, 60, 60)
    driver = driver._replace(
        rows=rows + 99,
        self_ns=(first_ms + 1) * MS,
        total_ns=(first_ms + 1) * MS,
        max_ns=first_ms * MS,
        execution_max_ns=first_ms * MS,
        histogram={histogram_bucket(10_000): 99, histogram_bucket(first_ms * MS): 1},
    )
    first = Exemplar(
        READ, SITE, "", Thread(1, "MainThread"), "execute", 0, first_ms * MS, rows, SITE, None, None
    )
    one = profile((driver, replace(time, left_out_ns=left_out_ms * MS)))
    return replace(one, exemplars=(first,))


def gain_ms(one: Profile) -> float:
    (found,) = findings(one)
    return found.gain_ns / MS


def test_its_line_counts_in_full() -> None:
    """The first pass takes 300 ms, every other pass 2 ms."""
    assert gain_ms(skewed(ROWS, left_out_ms=300)) == pytest.approx(498 * 99 / 100, rel=0.02)


def test_a_pass_that_was_interrupted_does_not_count() -> None:
    """Without more rows, the longest execution and the longest pass are chance."""
    assert gain_ms(skewed(1, left_out_ms=300)) == pytest.approx(200 * 99 / 100, rel=0.02)
    assert gain_ms(skewed(9, left_out_ms=300)) == pytest.approx(200 * 99 / 100, rel=0.02)
    assert gain_ms(skewed(10, left_out_ms=300)) == pytest.approx(498 * 99 / 100, rel=0.02)


def test_without_its_pass_the_driver_s_time_counts() -> None:
    """The timed passes do not include the longest execution: 60 ms, compared with 2 ms each."""
    assert gain_ms(skewed(ROWS, left_out_ms=59)) == pytest.approx(260 * 99 / 100, rel=0.02)


def test_without_a_timed_line_the_longest_execution_is_no_chance() -> None:
    """The driver's time includes it: 61 ms."""
    one = replace(skewed(ROWS, left_out_ms=0), line_times=())
    assert gain_ms(one) == pytest.approx(61 * 99 / 100, rel=0.02)
