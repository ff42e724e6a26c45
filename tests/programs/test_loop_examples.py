"""The examples that measure event loops: which work should move off them, and how long
users wait.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ("--rounds", "2", "--pairs", "2", "--requests", "2", "--rows", "2000")


@pytest.mark.parametrize(
    "options",
    [(), ("--slow-disk", "20"), ("--driver", "aiosqlite"), ("--loop", "twisted")],
    ids=["threads", "slow disk", "aiosqlite", "twisted"],
)
def test_eight_configurations_are_measured(options: tuple[str, ...]) -> None:
    command = [sys.executable, EXAMPLES / "offloading" / "offloading.py", *SMALL, *options]
    message = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    _, times, lags, _, chart, _, effects, published = message.split("\n\n")
    assert [len(part.splitlines()) for part in (times, lags, chart, effects)] == [9, 9, 8, 9]
    shares = [float(line.split()[-1]) for line in effects.splitlines()[1:]]
    assert abs(sum(shares) - 100) < 1
    assert "in the published study" in published
    if "--slow-disk" in options:
        change = re.search(r"^file +█+ +([+-][\d.]+)", chart, re.MULTILINE)
        assert change
        assert float(change[1]) < -20, "threads wait for the disk at the same time"


def test_a_server_on_and_off_the_loop_is_measured() -> None:
    program = EXAMPLES / "responsiveness" / "responsiveness.py"
    command = [sys.executable, program, "--seconds", "1", "--rates", "5,10"]
    message = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert len(re.findall(r" (?:blocking|threaded|change %) ", message)) == 6
    assert re.search(r"loop lag, threaded: mean .* \(\d+ heartbeats\)", message)
    assert "Share of the heartbeats (%) up to a lag" in message
