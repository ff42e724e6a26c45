"""A trace has the version of the SQLite that ran the program's statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

apsw = pytest.importorskip("apsw")
APSW, SQLITE3 = apsw.sqlite_lib_version(), sqlite3.sqlite_version
PROGRAMS = {
    "apsw": ("import apsw; list(apsw.Connection(':memory:').execute('SELECT 1'))", [APSW]),
    "sqlite3": ("import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')", [SQLITE3]),
    "both": (
        "import apsw, sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')",
        [SQLITE3, APSW],
    ),
    "none": ("pass", []),
    "killed": (
        (
            "import apsw, os; list(apsw.Connection(':memory:').execute('SELECT 1'));"
            " os.kill(os.getpid(), 9)"
        ),
        [APSW],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.repeats
def test_the_versions_of_a_process(
    queryprof: Run, script: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    text, versions = PROGRAMS[name]
    queryprof("run", "--no-report", "-o", tmp_path / "t.qprof", script(text))
    (process,) = read_profile(str(tmp_path / "t.qprof")).processes
    assert process.sqlite_version == ", ".join(dict.fromkeys(versions))
