"""The database times of tests in earlier runs on this machine, kept in pytest's cache.

Times differ between machines and from run to run, so they are in no baseline, and a test counts as
slower only when its time stands out from many.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from queryprof.errors import SettingsError

KEY = "queryprof/database_ns"
KEPT = 20
"""Runs of each test that are kept."""

NEEDED = 8
"""Runs that must be known: the next one of equal runs is the longest of nine in one case of
nine, so it must be much longer, too."""

FACTOR = 1.5
NOTABLE_NS = 10_000_000


class TestTimes:
    """The database times (ns) of tests in earlier runs that passed, the last one last.

    Raises:
        SettingsError: pytest has no cache in this run.
    """

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        cache = getattr(config, "cache", None)
        if cache is None:
            raise SettingsError("queryprof_fail_on: time needs pytest's cache (-p cacheprovider)")
        self._cache = cache
        self._known: dict[str, list[int]] = cache.get(KEY, {})

    def slower_than(self, test: str, database_ns: int) -> int | None:
        """The longest time known, in ns, if this one is much longer; else None."""
        known = self._known.get(test, [])
        if len(known) < NEEDED:
            return None
        longest = max(known)
        limit = max(FACTOR * longest, longest + NOTABLE_NS)
        return longest if database_ns > limit else None

    def keep(self, times_ns: Mapping[str, int]) -> None:
        """Adds the times of tests that passed."""
        for test, ns in times_ns.items():
            self._known[test] = [*self._known.get(test, []), ns][-KEPT:]
        self._cache.set(KEY, self._known)
