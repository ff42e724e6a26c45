"""Workloads that are replayed with several settings and workers."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.replay.workload import workload_prefix

pytestmark = pytest.mark.once


@pytest.mark.slow
def test_workers_play_all_transactions(queryprof: Run, before: Path) -> None:
    def replayed(*options: object) -> str:
        result = queryprof("lab", "replay", "x.qprof", "--db", before, "--rounds", 1, *options)
        assert result.returncode == 0, result.stderr
        return str(result.stderr.partition(" executions")[0])

    alone = replayed()
    assert replayed("--workers", 3) == alone
    result = queryprof(
        "lab",
        "replay",
        "x.qprof",
        "--db",
        before,
        "--rounds",
        2,
        "--workers",
        2,
        "--pragma",
        "cache_size=-100",
        "--fail-on",
        "none",
    )
    assert result.returncode == 0, result.stderr
    assert "2 times on each side" in result.stderr


@pytest.mark.slow
def test_tuning(queryprof: Run, before: Path) -> None:
    result = queryprof(
        "lab",
        "pragmas",
        "x.qprof",
        "--db",
        before,
        "--factor",
        "synchronous=full,off",
        "--factor",
        "journal_mode=delete,wal",
    )
    assert result.returncode == 0, result.stderr
    # The figures depend on the clock.
    assert "Effect of each pragma on the workload's" in result.stdout
    safe = result.stdout.partition("Fastest without")[2].partition("Fastest, but")[0]
    assert "synchronous = full" in safe or "keep your settings" in result.stdout
    result = queryprof("lab", "workers", "x.qprof", "--db", before, "--most", 2)
    assert result.returncode == 0, result.stderr
    assert "Best number of workers" in result.stdout


def tear(source: Path, target: Path) -> None:
    """Copy a database in the middle of a transaction, with its journal."""
    with closing(sqlite3.connect(source, isolation_level=None)) as con:
        con.execute("PRAGMA cache_size = 1")
        con.execute("BEGIN")
        con.execute(
            "CREATE TABLE torn AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1"
            " FROM n WHERE a < 9000) SELECT a, hex(zeroblob(50)) FROM n"
        )
        for suffix in ("", "-journal"):
            shutil.copy(f"{source}{suffix}", f"{target}{suffix}")
        con.execute("ROLLBACK")


@pytest.mark.slow
def test_bad_input_is_one_line(queryprof: Run, before: Path, tmp_path: Path) -> None:
    def bad(*arguments: object) -> str:
        result = queryprof(*arguments)
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1, result.stderr
        return str(result.stderr)

    assert "no such file" in bad("lab", "replay", "x.qprof", "--db", "none.db")
    assert "write NAME=VALUE" in bad(
        "lab", "replay", "x.qprof", "--db", before, "--pragma", "a=b;c"
    )
    assert "no workload next to it" in bad("lab", "replay", "y.qprof", "--db", before)
    noise = tmp_path / "noise.db"
    noise.write_bytes(os.urandom(5000))
    assert "not a SQLite database" in bad("lab", "replay", "x.qprof", "--db", noise)
    with closing(sqlite3.connect(before, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        message = bad("lab", "replay", "x.qprof", "--db", before)
        assert f"{before}: cannot be read while a program holds its lock" in message
    torn = tmp_path / "torn.db"
    tear(before, torn)
    message = bad("lab", "replay", "x.qprof", "--db", torn)
    assert "holds an unfinished transaction: open the database once" in message
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE other (a)")
    assert "no such table t" in bad("lab", "replay", "x.qprof", "--db", tmp_path / "other.db")
    assert "is not a regular file" in bad("lab", "replay", "x.qprof", "--db", os.devnull)
    with closing(sqlite3.connect(tmp_path / "changed.db")) as changed:
        changed.execute("CREATE VIEW t AS SELECT no_such_function() AS a, 1 AS b, 2 AS c")
        changed.commit()
    for command in (("replay", "--fail-on", "counts"), ("workers", "--most", 1)):
        message = bad("lab", *command, "x.qprof", "--db", tmp_path / "changed.db")
        assert "most of the workload cannot be replayed" in message
    assert "write NAME=VALUE,VALUE" in bad(
        "lab", "pragmas", "x.qprof", "--db", before, "--factor", "synchronous=full"
    )
    (path,) = [Path(name) for name in tmp_path.glob("x.qprof-workload-*")]
    assert str(path).startswith(workload_prefix(str(tmp_path / "x.qprof")))
    path.write_bytes(b"queryprof workload 1\n")
    assert "not a workload of this queryprof version" in bad(
        "lab", "replay", "x.qprof", "--db", before
    )
