"""Random programs on files have the same output, status and databases, bare and recorded.

This holds for any VFS, with other tools before or behind queryprof, and for any begin and end of
recording.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLES

PROGRAM = Path(__file__).with_name("random_files.py")
STEPS = 120


def run(
    folder: Path, seed: int, tools: str, is_recorded: bool
) -> tuple[int, str, dict[str, bytes]]:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, PROGRAM, str(seed), str(STEPS), tools, str(int(is_recorded))],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "MALLOC_PERTURB_": "85", "PYTHONMALLOC": "malloc"},
    )
    # A journal and a log have random numbers in them.
    files = {
        path.name: path.read_bytes() if path.suffix == ".db" else b""
        for path in folder.iterdir()
        if not path.name.endswith("-shm")
    }
    return done.returncode, done.stdout + done.stderr, files


@pytest.mark.once
@pytest.mark.parametrize("seed", range(max(1, EXAMPLES // 4)))
def test_a_program_sees_the_same_of_its_files(seed: int, tools: str, tmp_path: Path) -> None:
    bare = run(tmp_path / "bare", seed, tools, is_recorded=False)
    recorded = run(tmp_path / "recorded", seed, tools, is_recorded=True)

    assert recorded[:2] == bare[:2]
    assert bare[0] == 0, bare[1]
    assert recorded[2] == bare[2]
