"""Programs that run with another environment's Python, which has no queryprof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof
from conftest import QUERYPROF
from queryprof.collect.reader import read_profile

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not Path(queryprof.__file__).with_name("hooks").is_dir(),
        reason="an editable installation cannot be borrowed",
    ),
]

PROGRAM = """
import json, sqlite3, sys
sqlite3.connect(":memory:").execute("SELECT 1")
try:
    import click
except ImportError:
    click = None
print(json.dumps([sys.path, click is None]))
"""


def test_its_path_is_its_own(tmp_path: Path) -> None:
    """Packages next to queryprof are not importable there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "other"], check=True)
    bare, recorded = (
        subprocess.run(
            [*before, tmp_path / "other/bin/python", "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for before in ([], [QUERYPROF, "run", "--no-report", "-o", "x.qprof"])
    )
    assert json.loads(recorded) == json.loads(bare)
    assert json.loads(bare)[1]
    statements = {one.statement for one in read_profile("x.qprof").aggregates}
    assert "SELECT ?" in statements
