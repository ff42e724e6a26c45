"""Deeper nesting than any recording has is a one-line error, not a RecursionError."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import QUERYPROF, Run
from queryprof.replay.workload import FIXED, MAGIC
from queryprof.sql.tokens import MAX_CHARACTERS

pytestmark = pytest.mark.once

PROGRAM = "import sqlite3\nsqlite3.connect('t.db').execute('SELECT 1').fetchall()\n"
DEEP = "[" * 5000


@pytest.fixture
def recorded(queryprof: Run, script: Callable[[str], Path]) -> Path:
    done = queryprof("run", "--record-workload", "--no-report", "-o", "x.qprof", script(PROGRAM))
    assert done.returncode == 0, done.stderr
    (path,) = Path.cwd().glob("x.qprof-workload-*")
    return path


def test_a_workload(queryprof: Run, recorded: Path) -> None:
    lists = (b"[" + struct.pack("=I", 1)) * 5000 + b"0"
    recorded.write_bytes(MAGIC + b"E" + FIXED.pack(1, 1, 5, 0, 0, 0, 0, 0, 0, 1) + lists)
    for command in ("replay", "workers"):
        done = queryprof("lab", command, "x.qprof", "--db", "t.db")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is damaged after" in done.stderr


@pytest.mark.parametrize("command", ["report", "analyze", "html"])
@pytest.mark.repeats
def test_a_trace(queryprof: Run, recorded: Path, command: str) -> None:
    with closing(sqlite3.connect("x.qprof")) as db:
        db.execute("UPDATE process SET argv = ?, unmeasured = ?", (DEEP, DEEP))
        db.commit()
    done = queryprof(command, "x.qprof")
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    del recorded


LONGER = """
CREATE TABLE t (a, b);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO t SELECT i, i FROM n
"""
QUERIES = """
import sqlite3
db = sqlite3.connect("t.db")
for number in range(60):
    for _ in range(30):
        db.execute(f"SELECT a AS c{number} FROM t WHERE lower(a) = ?", (number,)).fetchall()
"""
MOST_BYTES, MOST_CPU_S = 1 << 30, 60


def limit() -> None:
    """Ten times what the commands take here. A command whose work grows faster than the depth takes
    far more.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))


@pytest.fixture(scope="module")
def queried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database and the trace of its queries."""
    place = tmp_path_factory.mktemp("queried")
    with closing(sqlite3.connect(place / "t.db")) as db:
        db.executescript(LONGER)
    (place / "program.py").write_text(QUERIES)
    command = [QUERYPROF, "run", "--parameters", "--no-report", "-o", "x.qprof", "program.py"]
    subprocess.run(command, cwd=place, check=True)
    return place


MORE = {
    "comparisons": " AND " + "=(" * 4850,
    "parentheses": "(" * 9000,
    "spaces": " " * 100_000,
    "RETURNING": " RETURNING " * 3000 + " ON",
    "INDEXED": " INDEXED" * 3000,
}


@pytest.mark.strange_traces
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("comparisons", []),
        ("RETURNING", ["--prove", "--budget", "2s"]),
        *(
            pytest.param(kind, options, marks=pytest.mark.slow)
            for kind in MORE
            for options in ([], ["--prove", "--budget", "2s"])
        ),
    ],
)
@pytest.mark.slow
def test_statements_of_a_stranger_s_trace(
    queryprof: Run, queried: Path, kind: str, options: list[str]
) -> None:
    more = MORE[kind]
    for name in ("t.db", "x.qprof"):
        shutil.copy(queried / name, name)
    with closing(sqlite3.connect("x.qprof")) as db:
        db.execute(
            "UPDATE statement SET text = text || ? WHERE text LIKE '%lower%'",
            (more[:MAX_CHARACTERS],),
        )
        db.execute("UPDATE exemplar SET sql = replace(sql, ' WHERE', ' WHERE ' || ?)", (more,))
        db.commit()
    databases = ["--db", "t.db"] if options else []
    done = queryprof("analyze", "x.qprof", *databases, *options, preexec_fn=limit)
    assert done.returncode in (0, 1, 2), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
