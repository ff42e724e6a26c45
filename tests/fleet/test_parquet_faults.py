"""Traces that cannot be exported, and places that cannot be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleet.test_parquet import record, rows_of

import queryprof as package
from conftest import Run

pytestmark = pytest.mark.once
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from queryprof.errors import TraceError  # noqa: E402
from queryprof.fleet.schema import FLEET_TABLES  # noqa: E402
from queryprof.fleet.store import footer_of  # noqa: E402


def export(queryprof: Run, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return queryprof("fleet", "export", "-o", "out", *arguments, **options)


@pytest.mark.strange_traces
@pytest.mark.slow
def test_what_cannot_be_read_is_left_out(queryprof: Run) -> None:
    record("good.qprof")
    content = Path("good.qprof").read_bytes()
    Path("damaged.qprof").write_bytes(content[: len(content) // 2])
    Path("newer.qprof").write_bytes(content)
    newer = sqlite3.connect("newer.qprof")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    package.install("empty.qprof")
    package.uninstall()
    result = export(
        queryprof, "damaged.qprof", "newer.qprof", "empty.qprof", "none.qprof", "good.qprof"
    )
    assert result.returncode == 1
    left_out = [
        line for line in result.stderr.splitlines() if line.startswith("queryprof: skipped: ")
    ]
    assert [line.split()[2].rstrip(":") for line in left_out] == [
        "damaged.qprof",
        "newer.qprof",
        "empty.qprof",
        "none.qprof",
    ]
    assert "empty.qprof: no database calls" in result.stderr
    assert rows_of(Path("out"), "aggregate")


@pytest.mark.slow
def test_a_living_process_is_left_out(queryprof: Run) -> None:
    record("good.qprof")
    program = (
        "import sqlite3, queryprof; queryprof.install('living.qprof')\n"
        "sqlite3.connect(':memory:').execute('SELECT 1').fetchall(); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        result = export(queryprof, "living.qprof", "good.qprof")
        child.communicate(b"\n")
    assert result.returncode == 1
    assert "living.qprof: one of its processes is still running" in result.stderr
    assert len(list(Path("out", "aggregate").rglob("*.parquet"))) == 1


@pytest.mark.slow
def test_a_directory_of_others(queryprof: Run, tmp_path: Path) -> None:
    record()
    folder = Path("out", "aggregate", "service=x")
    folder.mkdir(parents=True)
    (folder / "a.parquet").write_text("no Parquet")
    assert export(queryprof, "x.qprof").returncode == 0
    shutil.rmtree("out")
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), folder / "a.parquet")
    result = export(queryprof, "x.qprof")
    assert (result.returncode, result.stdout) == (2, "")
    assert "out: contains tables with no schema version" in result.stderr
    assert "a.parquet" in result.stderr
    Path("file").write_text("")
    result = queryprof("fleet", "export", "-o", "file", "x.qprof")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "cannot be written" in result.stderr


@pytest.mark.slow
def test_no_room_leaves_no_unfinished_file(queryprof: Run) -> None:
    record()
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "-"]
    command = [*limited, sys.executable, "-m", "queryprof"]
    result = subprocess.run(
        [*command, "fleet", "export", "-o", "out", "x.qprof"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2, result.stderr
    assert "cannot be written: " in result.stderr
    assert "Traceback" not in result.stderr
    assert not [path for path in Path("out").rglob("*") if path.is_file()]


def test_without_pyarrow(queryprof: Run) -> None:
    record()
    Path("without").mkdir()
    Path("without", "pyarrow.py").write_text("raise ModuleNotFoundError(name='pyarrow')")
    result = export(queryprof, "x.qprof", env={"PYTHONPATH": "without"})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "queryprof: pyarrow is not installed; in a clone of queryprof, run: pip install '.[fleet]'\n"
    )


def test_options_that_do_not_go_together(queryprof: Run) -> None:
    record()
    for arguments in (
        ("fleet", "export", "x.qprof"),
        ("fleet", "export", "-o", "-", "x.qprof"),
        ("fleet", "export", "-o", "out", "--statement-text", "x.qprof"),
        ("fleet", "export", "-o", "out", "--otlp", "http://127.0.0.1:1", "x.qprof"),
        ("export", "--format", "speedscope", "x.qprof", "x.qprof"),
    ):
        result = queryprof(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        assert not Path("out").exists()


def test_a_file_with_more_rows_than_bytes_is_refused(tmp_path: Path) -> None:
    """Reading it would take all memory: a compressed file can have any number of equal rows."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([1] * 1_000_000)}), path)
    assert os.path.getsize(path) < 1_000_000
    with pytest.raises(TraceError, match="more than it has bytes"):
        footer_of(str(path), FLEET_TABLES[0])
