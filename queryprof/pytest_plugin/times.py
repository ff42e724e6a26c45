"""Database times of tests in earlier runs on this machine, kept in pytest's cache.

Times differ between machines and from run to run, so baselines do not contain them. A test counts
as slower only if its time is far above its times in many earlier runs.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from queryprof.errors import SettingsError

KEY = "queryprof/database_ns"
MAX_RUNS = 20
"""Number of kept runs per test."""

MIN_RUNS = 8
"""Minimum number of known runs. Among nine equal runs, the last run is the longest in one of nine
cases. So a test counts as slower only if its time is also much longer than the longest known time.
"""

FACTOR = 1.5
NOTABLE_NS = 10_000_000


class TestTimes:
    """Database times (ns) of tests in earlier runs that passed, oldest first.

    Raises:
        SettingsError: pytest has no cache in this run.
    """

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        cache = getattr(config, "cache", None)
        if cache is None:
            raise SettingsError(
                "queryprof_fail_on = time needs pytest's cache; enable it with -p cacheprovider"
            )
        self._cache = cache
        self._known: dict[str, list[int]] = cache.get(KEY, {})

    def slower_than(self, test: str, database_ns: int) -> int | None:
        """Return the longest known time in ns if the given time is much longer, else None."""
        known = self._known.get(test, [])
        if len(known) < MIN_RUNS:
            return None
        longest = max(known)
        limit = max(FACTOR * longest, longest + NOTABLE_NS)
        return longest if database_ns > limit else None

    def keep(self, times_ns: Mapping[str, int]) -> None:
        """Add the times of passed tests."""
        for test, ns in times_ns.items():
            self._known[test] = [*self._known.get(test, []), ns][-MAX_RUNS:]
        self._cache.set(KEY, self._known)
