"""The times at which a replay runs each execution."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from queryprof.replay import player

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("speed", "due_s"), [(0, 0.0), (1, 2.0), (4, 0.5), (0.5, 4.0)])
def test_twice_the_speed_is_half_the_time(
    monkeypatch: pytest.MonkeyPatch, speed: float, due_s: float
) -> None:
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    clock = SimpleNamespace(sleep=sleep, perf_counter=lambda: now_s)
    monkeypatch.setattr(player, "time", clock)
    monkeypatch.setattr(player, "MAX_PAUSE_S", 60)
    played: list[float] = []
    fake = SimpleNamespace(
        play=lambda *_, **__: played.append(now_s), close_one=lambda _: None, close=lambda: None
    )
    executions = [SimpleNamespace(start_unix_ns=at * 10**9, identity=1) for at in (5, 7)]
    player._play_in_turn(SimpleNamespace(speed=speed), executions, fake)  # type: ignore[arg-type]
    assert played == [0.0, due_s]
