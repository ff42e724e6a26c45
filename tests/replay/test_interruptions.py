"""Executions that do not end in a replay."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from queryprof.replay import player as module
from queryprof.replay.player import FAILS_HERE, OVERTIME, Player, PlayOrder, watch_players
from queryprof.replay.workload import OUTSIDE, Execution

pytestmark = pytest.mark.once

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def execution(text: str) -> Execution:
    return Execution(0, 0, 0, "t.db", "execute", 0, 0, text, None, False, OUTSIDE)


def test_a_text_that_was_interrupted_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of its executions would take a minute."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    player = Player(PlayOrder("t.qprof", "t.db", str(tmp_path / "copy.db"), "result"))
    threading.Thread(target=watch_players, args=([player],), daemon=True).start()
    for text in (ENDLESS, ENDLESS, ENDLESS):
        player.play(execution(text), keeps_rows=False)
    monkeypatch.setattr(module, "PATIENCE_S", 60.0)
    player.play(execution("SELECT 1"), keeps_rows=False)
    player.close()
    assert player.played.left_out == {f"{FAILS_HERE}: interrupted": 1, OVERTIME: 2}
    assert player.played.executions == 1
