"""Percentiles from the log-linear histogram of the core (queryprof/core/memory/histogram.h).

Below 16 ns a bucket is 1 ns wide; above, each octave has 16 buckets. A bucket's middle is never
more than 3.2% from a value in it, so a percentile is right to 4%.
"""

from collections.abc import Iterable, Mapping, Sequence

BUCKETS_PER_OCTAVE = 16


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """Return a bucket's lower limit (inclusive) and upper limit (exclusive) in ns."""
    if bucket < BUCKETS_PER_OCTAVE:
        return bucket, bucket + 1
    octave, place = divmod(bucket, BUCKETS_PER_OCTAVE)
    width = 1 << (octave - 1)
    low = (BUCKETS_PER_OCTAVE + place) * width
    return low, low + width


def percentile(histogram: Mapping[int, int], share: float, longest_ns: int) -> int | None:
    """Return the duration in ns that a share (0 to 1) of the executions did not exceed, by the
    nearest rank.

    Returns None if the histogram is empty. The result is at most `longest_ns`, the longest measured
    duration. If the share selects the longest execution, the result is `longest_ns`.
    """
    (found,) = percentiles(histogram, (share,), longest_ns)
    return found


def percentiles(
    histogram: Mapping[int, int], shares: Sequence[float], longest_ns: int
) -> list[int | None]:
    """Return the percentiles for several shares. The shares must be in ascending order."""
    total = sum(histogram.values())
    if total <= 0:
        return [None] * len(shares)
    buckets = iter(sorted(histogram))
    seen = bucket = 0
    found: list[int | None] = []
    for share in shares:
        rank = max(1, -(-total * share // 1))
        while seen < rank:
            bucket = next(buckets)
            seen += histogram[bucket]
        low, high = bucket_bounds(bucket)
        found.append(longest_ns if rank == total else min((low + high - 1) // 2, longest_ns))
    return found


def add_histograms(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of histograms."""
    total: dict[int, int] = {}
    for histogram in histograms:
        for bucket, executions in histogram.items():
            total[bucket] = total.get(bucket, 0) + executions
    return total
