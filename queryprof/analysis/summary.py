"""Summarize a distribution of durations as mean, percentiles and maximum."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.analysis.histogram import percentile
from queryprof.model import Distribution


@dataclass(frozen=True, slots=True)
class Summary:
    """A distribution of durations in ns; every value is None if there are no durations."""

    count: int
    mean_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None


def summarize_durations(distribution: Distribution) -> Summary:
    """Return the mean and percentiles. Percentiles from the histogram are accurate to 4%."""
    known = distribution.count > 0

    def at(share: float) -> int | None:
        return percentile(distribution.histogram, share, distribution.max_ns) if known else None

    return Summary(
        count=distribution.count,
        mean_ns=distribution.total_ns / distribution.count if known else None,
        p50_ns=at(0.50),
        p95_ns=at(0.95),
        p99_ns=at(0.99),
        max_ns=distribution.max_ns if known else None,
    )
