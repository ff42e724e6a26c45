"""Random sequences of public functions with queries in between: nothing breaks, and each recording
has exactly the queries made while it was on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states.sequence import SQL, STEPS

from conftest import EXAMPLES, by_operation
from queryprof.collect.reader import read_profile

PROGRAM = Path(__file__).with_name("sequence.py")


@settings(
    max_examples=max(1, EXAMPLES // 2),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
def test_any_sequence_is_recorded_exactly(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, PROGRAM, " ".join(steps)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        made = json.loads(done.stdout)
        recorded = {
            name: by_operation(read_profile(f"{folder}/{name}"))[SQL, "execute"]
            for name in made["queries"]
        }
    assert recorded == made["queries"]
    assert [found for _, found in made["profiles"]] == [count for count, _ in made["profiles"]]
