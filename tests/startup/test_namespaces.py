"""Processes in another namespace of process ids."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from collect import killed_programs
from collect.killed_programs import (
    DIES,
    INSTALLS,
    Script,
    asked,
)

from conftest import QUERYPROF, Run
from queryprof.region.region_files import SHARED_MEMORY, regions_of_trace

script = killed_programs.script

pytestmark = [
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
    pytest.mark.once,
]

NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]


def may_unshare() -> bool:
    try:
        return (
            subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not may_unshare(), reason="may not make namespaces")
def test_processes_of_another_namespace(queryprof: Run, script: Script) -> None:
    """Their state is unknown: their regions are taken when the command has ended, and
    not before.
    """
    path = script(
        "for number in range(70):\n"
        "    if not os.fork():\n"
        "        for turn in range(20): work(1); time.sleep(0.1)\n"
        "        os._exit(0)\n"
        "for number in range(70): os.wait()\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", *NAMESPACE, f"exec {sys.executable} {path}")
    assert asked() == 70 * 20


@pytest.mark.skipif(not may_unshare(), reason="may not make namespaces")
def test_the_first_process_of_a_container_has_the_program_s_status(tmp_path: Path) -> None:
    """Its own signal does not end it: the status is that of a shell for a command killed by the
    signal.
    """
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    command = [QUERYPROF, "run", "--no-report", "-o", tmp_path / "t.qprof", "-c", killed]
    done = subprocess.run(
        ["unshare", "--pid", "--fork", *command], capture_output=True, check=False
    )
    assert done.returncode == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.skipif(not may_unshare(), reason="may not make namespaces")
def test_a_container_that_is_gone(queryprof: Run, script: Script) -> None:
    """Its memory is gone, and its copy on disk is read."""
    path = script(
        f"{INSTALLS}began = time.monotonic()\n"
        "while time.monotonic() - began < 4: work(1); time.sleep(0.01)\n" + DIES
    )
    subprocess.run(
        [*NAMESPACE, f"mount -t tmpfs none {SHARED_MEMORY} && exec {sys.executable} {path}"],
        capture_output=True,
        check=False,
    )
    assert not regions_of_trace("x.qprof")
    assert asked() > 50
    assert queryprof("report", "x.qprof").returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="may not make namespaces")
def test_a_process_that_cannot_be_seen_keeps_its_memory(script: Script) -> None:
    """A reader in a container does not know whether a process outside of it is alive."""
    path = script(f"{INSTALLS}work(3)\nprint(flush=True)\ninput()\nwork(2)\n")
    save_left_recordings = (
        "import os; from queryprof.collect.recovery import save_left_recordings;"
        " print(save_left_recordings(os.path.abspath('x.qprof')))"
    )
    with subprocess.Popen(
        [sys.executable, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        program.stdout.readline()
        regions = regions_of_trace("x.qprof")
        reader = [*NAMESPACE, f'exec {sys.executable} -c "{save_left_recordings}"']
        done = subprocess.run(reader, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("[]\n", "")
        assert regions_of_trace("x.qprof") == regions != []
        program.communicate("\n")
    assert asked() == 5
