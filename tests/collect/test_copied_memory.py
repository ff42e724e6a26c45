"""Copies of a process's memory that a machine has left without the memory itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collect import killed_programs
from collect.killed_programs import INSTALLS, Script, asked

from queryprof.collect.recovery import bring_in
from queryprof.region.region_files import PART_SUFFIX, SHARED_MEMORY, regions_of

script = killed_programs.script

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_the_newest_copy_of_a_memory_is_brought_in(script: Script, names: str) -> None:
    """A machine that lost its power has kept two copies of the memory of one process."""
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
            (region,) = regions_of("x.qprof")
            copy = f"x.qprof.{program.pid}.{name}{PART_SUFFIX}"
            shutil.copy(region, copy)
            os.utime(copy, ns=(number, number))
            if number:
                program.kill()
            else:
                program.stdin.write("\n")
                program.stdin.flush()
    os.unlink(region)
    assert bring_in(os.path.abspath("x.qprof")) == [os.path.abspath("x.qprof")]
    assert asked() == 5
    assert not list(Path().glob(f"*{PART_SUFFIX}"))
