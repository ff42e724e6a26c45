"""The lag that most heartbeats of an event loop do not exceed."""

from __future__ import annotations

import pytest

from queryprof.hooks.event_loops.heartbeat import Beats, beating
from queryprof.hooks.event_loops.lag import loop_lag

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("number", "place"), [(1, 1), (19, 19), (20, 19), (21, 20), (100, 95)])
def test_the_lag_that_95_of_100_beats_do_not_exceed(number: int, place: int) -> None:
    beats = Beats("asyncio")
    beats.lags_s.extend(map(float, range(number, 0, -1)))
    beats.start()
    try:
        (found,) = loop_lag()
    finally:
        beats.stop()
    assert found["p95_s"] == place
    assert not beating
