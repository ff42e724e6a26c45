"""`lab grow` on a database and a workload of a stranger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from queryprof.replay.growing import _play
from queryprof.replay.player import Player, PlayOrder

pytestmark = pytest.mark.once


def test_each_connection_is_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triggers are created again from the schema's text, which may be any text."""
    database = tmp_path / "copy.db"
    with closing(sqlite3.connect(database)) as con:
        con.execute("CREATE TABLE t (a)")
        con.executemany("INSERT INTO t VALUES (?)", [(1,)] * 40)
        con.execute("CREATE TRIGGER g AFTER DELETE ON t BEGIN SELECT 1; END")
        con.commit()
    other = tmp_path / "other.db"
    monkeypatch.setattr("queryprof.replay.past.TRIGGERS", f"SELECT 'g', 'ATTACH ''{other}'' AS x'")
    order = PlayOrder("t.qprof", "t.db", str(database), "", output_trace="p.qprof")
    order = replace(order, share=8, whole=database.as_uri())
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        _play(order)
    assert not other.exists()


def test_a_confined_connection_refuses_other_files(tmp_path: Path) -> None:
    player = Player(PlayOrder("t.qprof", "t.db", str(tmp_path / "copy.db"), ""))
    with closing(sqlite3.connect(tmp_path / "copy.db")) as con:
        player.confine(con)
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            con.execute("ATTACH ? AS x", (str(tmp_path / "other.db"),))
