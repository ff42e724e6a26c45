"""Regions that another process moves while they are read."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from core.window_programs import run

from queryprof.collect import recordings
from queryprof.collect.recordings import recordings_at
from queryprof.collect.recovery import save_left_recordings
from queryprof.region.region import Region, opened_region
from queryprof.region.region_files import regions_of_trace

KILLED = (
    "import os, signal, sqlite3, queryprof\n"
    "queryprof.install('x.qprof', window='1h')\n"
    "sqlite3.connect(':memory:').execute('SELECT 1').fetchone()\n"
    "os.kill(os.getpid(), signal.SIGKILL)\n"
)


def test_a_region_that_moves_to_the_disk_while_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(KILLED)
    assert result.returncode == -9, result.stderr

    def opened(path: str) -> Region:
        save_left_recordings("x.qprof")  # another process does, after the regions were listed
        return Region(path=path)

    monkeypatch.setattr(recordings, "Region", opened)
    with ExitStack() as files:
        (found,) = recordings_at("x.qprof", files)
        assert found.region
        assert found.region.path.endswith(".live")


def test_a_region_that_moves_to_the_disk_replaces_its_older_copies() -> None:
    assert run(KILLED).returncode == -9
    (region,) = regions_of_trace(str(Path("x.qprof").resolve()))
    with opened_region(region) as opened:
        pid = int(opened["pid"])
    older = Path(f"x.qprof.{pid}.0123abc.live")
    shutil.copy(region, older)
    save_left_recordings("x.qprof")
    (copy,) = Path().glob("*.live")
    assert copy != older
    assert not regions_of_trace(str(Path("x.qprof").resolve()))
