"""Copies on disk, if there is no shared memory."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from collect import killed_programs
from collect.killed_programs import (
    DIES,
    TAKES_ALL_DESCRIPTORS,
    Script,
    asked,
    asked_in_all,
    killed,
)

from conftest import Run
from queryprof.collect import collection as collecting
from queryprof.collect.collection import CommandDirectory
from queryprof.collect.reader import read_profile
from queryprof.errors import TraceError
from queryprof.region.region_files import SHARED_MEMORY, checkpoints_of_trace, regions_of_trace
from queryprof.trace.store import TraceStore

script = killed_programs.script

pytestmark = [
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
    pytest.mark.once,
]

NO_SHARED_MEMORY = (
    "import queryprof, queryprof.collect.target, queryprof.recorder.session\n"
    "queryprof.recorder.session.CHECKPOINT_INTERVAL_S = 0.5\n"
    "queryprof.collect.target.memory_directories = lambda: []\n"
    "queryprof.install('x.qprof')\n"
)


@pytest.mark.slow
def test_copies_of_a_process_that_executes_itself(script: Script) -> None:
    """Each of its programs has its own copies, although the system sees one process."""
    path = script(
        f"{NO_SHARED_MEMORY}began = time.monotonic()\n"
        "while time.monotonic() - began < 3: work(1); time.sleep(0.01)\n"
        "if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
        f"{DIES}"
    )
    killed(path)
    assert len(checkpoints_of_trace("x.qprof")) == 2
    assert read_profile("x.qprof")
    assert asked_in_all() > 200


@pytest.mark.slow
def test_copies_after_a_time_without_descriptors(script: Script) -> None:
    """The next copy has the executions of that time."""
    path = script(
        NO_SHARED_MEMORY + "def work_for(seconds):\n"
        "    began, done = time.monotonic(), 0\n"
        "    while time.monotonic() - began < seconds:\n"
        "        connection.execute('SELECT ?', (1,))\n"
        "        time.sleep(0.01)\n"
        "        done += 1\n"
        "    return done\n"
        "connection = sqlite3.connect(':memory:')\n"
        "done = work_for(2)\n"
        f"{TAKES_ALL_DESCRIPTORS}"
        "done += work_for(2)\n"
        "for file in taken: os.close(file)\n"
        "open('done', 'w').write(str(done))\n"
        f"work_for(2.5)\n{DIES}"
    )
    killed(path)
    assert asked() > int(Path("done").read_text())


@pytest.mark.slow
def test_a_copy_counts_once(script: Script, queryprof: Run) -> None:
    """A process without shared memory ends normally after it has made copies."""
    path = script(
        "import queryprof.collect.target, queryprof.recorder.session\n"
        "session = queryprof.recorder.session.session\n"
        "queryprof.collect.target.memory_directories = lambda: []\n"
        "session._share_target(session._target)\n"
        "began = time.monotonic()\n"
        "times = 0\n"
        "while time.monotonic() - began < 3: work(1); times += 1; time.sleep(0.01)\n"
        "print(times)\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert asked() == int(result.stdout)
    assert len(read_profile("x.qprof").processes) == 1


def test_a_disk_that_is_full_for_a_while(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier copies stay, and the missing ones are written later, once."""
    directory = str(tmp_path / "x.parts")
    os.mkdir(directory)
    code = (
        "import queryprof.recorder.session as"
        f" module\nmodule.session.start(target=lambda: module.TraceTarget({directory + '/t.qprof'!r},"
        f" None, {directory!r}, is_collected=True))\nwork(5)\n{DIES}"
    )
    for _ in range(3):
        killed(script(code))
    first, second, third = regions_of_trace(directory)
    collection = CommandDirectory(directory)
    assert collection.take(first)

    def no_room(*_: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(TraceStore, "add_intervals", no_room)
        with pytest.raises(sqlite3.OperationalError, match="is full"):
            collection.take(second)
    with monkeypatch.context() as patch:
        patch.setattr(collecting, "TraceStore", no_store)
        with pytest.raises(OSError, match="is full"):
            collection.take(second)
    assert collection.take(third)
    assert collection.take(second)
    assert not collection.take(second)
    assert collection.write("x.qprof") == "x.qprof"
    assert asked() == 15
    assert len(read_profile("x.qprof").processes) == 3


def no_store(path: str) -> TraceStore:
    Path(path).touch(exist_ok=False)
    raise TraceError(f"{path}: the trace cannot be written: database or disk is full")
