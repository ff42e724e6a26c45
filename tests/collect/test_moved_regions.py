"""Regions that another process moves while they are read."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from core.window_programs import run

from queryprof.collect import recordings
from queryprof.collect.recordings import recordings_at
from queryprof.collect.recovery import save_left_recordings
from queryprof.region.region import Region


def test_a_region_that_moves_to_the_disk_while_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(
        "import os, signal, sqlite3, queryprof\n"
        "queryprof.install('x.qprof', window='1h')\n"
        "sqlite3.connect(':memory:').execute('SELECT 1').fetchone()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert result.returncode == -9, result.stderr

    def opened(path: str) -> Region:
        save_left_recordings("x.qprof")  # another process does, after the regions were listed
        return Region(path=path)

    monkeypatch.setattr(recordings, "Region", opened)
    with ExitStack() as files:
        (found,) = recordings_at("x.qprof", files)
        assert found.region
        assert found.region.path.endswith(".live")
