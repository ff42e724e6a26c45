"""A program whose workload is replayed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from replay.recorded_workloads import PROGRAM, recorded

from conftest import Run


@pytest.fixture
def before(queryprof: Run, script: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a database as it was before the recording. The workload is next to x.qprof."""
    program, path = script(textwrap.dedent(PROGRAM)), tmp_path / "t.db"
    subprocess.run([sys.executable, program, path, "fill"], check=True)
    kept = tmp_path / "before.db"
    kept.write_bytes(path.read_bytes())
    recorded(queryprof, program, path)
    return kept
