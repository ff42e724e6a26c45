"""The example that measures what is worth moving off an event loop."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "offloading" / "offloading.py"
SMALL = ("--rounds", "2", "--pairs", "2", "--requests", "2", "--rows", "2000")


@pytest.mark.parametrize(
    "options",
    [(), ("--slow-disk", "20"), ("--driver", "aiosqlite"), ("--loop", "twisted")],
    ids=["threads", "slow disk", "aiosqlite", "twisted"],
)
def test_eight_configurations_are_measured(options: tuple[str, ...]) -> None:
    command = [sys.executable, EXAMPLE, *SMALL, *options]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    _, times, lags, _, chart, _, effects, published = said.split("\n\n")
    assert [len(part.splitlines()) for part in (times, lags, chart, effects)] == [9, 9, 8, 9]
    shares = [float(line.split()[-1]) for line in effects.splitlines()[1:]]
    assert abs(sum(shares) - 100) < 1
    assert "in the published study" in published
    if "--slow-disk" in options:
        change = re.search(r"^file +█+ +([+-][\d.]+)", chart, re.MULTILINE)
        assert change
        assert float(change[1]) < -20, "threads wait for the disk at the same time"
