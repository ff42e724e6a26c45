"""The example of a fleet: both faults of the new version are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

CANARY = Path(__file__).parents[2] / "examples" / "fleet" / "canary.py"


@pytest.mark.slow
def test_both_faults_are_found() -> None:
    result = subprocess.run(
        [sys.executable, CANARY], capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 1
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[-1].startswith("worse: ")
    gates = dict(part.split() for part in lines[-1].removeprefix("worse: ").split(", "))
    assert {"vmsteps", "counts", "plans", "findings"} <= set(gates)
    assert gates["vmsteps"] == "1"
    steps = lines.index("More VM steps in each execution with version 2 than with 1: 1")
    assert lines[steps + 3] == "SELECT id, day FROM purchase WHERE customer = ?"
    assert "0 -> 30 in each  GET /orders" in lines
    assert "SCAN purchase;" in lines
