"""No command waits for a pipe in a file's place."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.trace.processes import identities_in
from queryprof.trace.store import TraceStore

pytestmark = pytest.mark.once


@pytest.mark.parametrize("place", ["x.qprof", "x.qprof.abc.parts/runner", "x.html", "x.prof"])
@pytest.mark.repeats
def test_a_pipe_is_not_waited_for(place: str, queryprof: Run, tmp_path: Path) -> None:
    if place != "x.qprof":
        TraceStore(str(tmp_path / "x.qprof")).close()
    (tmp_path / place).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / place)
    for command in (
        ("report", "x.qprof"),
        ("html", "x.qprof"),
        ("export", "--format", "pstats", "x.qprof"),
    ):
        done = queryprof(*command, timeout=60)
        assert done.returncode in (0, 2)
        assert "Traceback" not in done.stderr


def test_a_link_to_a_pipe_is_not_written_through(queryprof: Run, tmp_path: Path) -> None:
    TraceStore(str(tmp_path / "x.qprof")).close()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x.html").symlink_to(tmp_path / "pipe")
    done = queryprof("html", "x.qprof", timeout=60)
    assert done.returncode == 2
    assert "is a symbolic link" in done.stderr


def test_processes_are_read_of_a_plain_table_alone(tmp_path: Path) -> None:
    """A computed column, a view or a virtual table of another user's file may never end."""
    path = tmp_path / "x.qprof"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE process (pid, start_unix_ns, host AS ('short'))")
        db.execute("INSERT INTO process (pid, start_unix_ns) VALUES (1, 2)")
        db.commit()
    assert identities_in(str(path)) == []
