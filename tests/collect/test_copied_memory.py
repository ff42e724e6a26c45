"""Copies of a process's memory whose original is gone after a restart of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collect import killed_programs
from collect.killed_programs import DIES, INSTALLS, Script, asked, killed

from conftest import Run
from queryprof.collect.recovery import save_left_recordings
from queryprof.region.region import opened_region
from queryprof.region.region_files import PART_SUFFIX, SHARED_MEMORY, regions_of_trace

script = killed_programs.script
HOUR_NS = 3600 * 10**9

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_the_newest_copy_of_a_memory_is_brought_in(script: Script, names: str) -> None:
    """A machine that lost power has kept two copies of the memory of one process."""
    path = script(
        f"{INSTALLS}work(3)\nprint(flush=True)\ninput()\nwork(2)\nprint(flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin
        assert program.stdout
        for number, name in enumerate(names):
            program.stdout.readline()
            (region,) = regions_of_trace("x.qprof")
            copy = f"x.qprof.{program.pid}.{name}{PART_SUFFIX}"
            shutil.copy(region, copy)
            os.utime(copy, ns=(number, number))
            if number:
                program.kill()
            else:
                program.stdin.write("\n")
                program.stdin.flush()
    os.unlink(region)
    assert save_left_recordings(os.path.abspath("x.qprof")) == [os.path.abspath("x.qprof")]
    assert asked() == 5
    assert not list(Path().glob(f"*{PART_SUFFIX}"))


def test_damaged_memory_of_a_killed_process_is_reported(queryprof: Run, script: Script) -> None:
    """The windows that ended earlier are complete."""
    path = script(
        "import queryprof\nfrom queryprof.core import _core\n"
        "queryprof.install('x.qprof', window='1h')\nwork(3)\n"
        f"_core.end_window(time.time_ns() // {HOUR_NS} * {HOUR_NS} + {HOUR_NS} + 5)\nwork(2)\n{DIES}"
    )
    killed(path)
    (memory,) = regions_of_trace("x.qprof")
    with opened_region(memory) as region, open(memory, "r+b") as file:
        file.seek(region.tables["texts"].at + region["facts"] + 1)
        file.write(b"\xff")
    message = " ".join(queryprof("report", "x.qprof").stdout.split())
    assert "3 executions of 1 statement" in message
    assert "skipped, and missing in all figures: x.qprof." in message
    assert ".live: has no data about its process" in message
