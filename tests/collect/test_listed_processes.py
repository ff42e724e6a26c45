"""A collapsed trace lists the processes that were killed."""

from __future__ import annotations

import pytest
from collect.test_collapse import processes

from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once


@pytest.mark.parametrize("clean_end", [0, 1])
def test_killed_processes_stay_listed(clean_end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds however many processes are listed before them."""
    monkeypatch.setattr("queryprof.collect.collapse.MAX_LISTED", 3)
    processes("a.qprof", 5)
    processes("b.qprof", 2, first=5, clean_end=clean_end)
    merge_traces("c.qprof", ["a.qprof", "b.qprof"], collapses=True)
    profile = read_profile("c.qprof")
    assert profile.unlisted
    killed = [] if clean_end else [6, 7]
    assert [one.pid for one in profile.processes] == [1, 2, 3, *killed]
    assert profile.unlisted.count == 7 - 3 - len(killed)
