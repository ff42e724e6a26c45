"""Trace files: merged exactly, and refused in one line if they are not traces."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queryprof as qp
from conftest import EXAMPLES, Run, by_operation
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.errors import TraceError
from queryprof.model import Profile
from queryprof.trace.schema import SCHEMA
from queryprof.trace.store import TraceStore

pytestmark = pytest.mark.once


def record(path: Path | str, *sqls: str) -> Profile:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    with qp.profile(path) as recording:
        for sql in sqls:
            try:
                connection.execute(sql).fetchall()
            except sqlite3.Error:
                pass
    connection.close()
    return recording.profile


SQLS = st.lists(
    st.sampled_from(
        ["SELECT a FROM t", "INSERT INTO t VALUES (1)", "SELECT a, a FROM t", "SELECT x FROM t"]
    ),
    max_size=12,
)

FIGURES = ("count", "errors", "rows", "total_ns", "self_ns")


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(SQLS, min_size=1, max_size=4))
def test_a_merge_adds_up(tmp_path: Path, programs: list[list[str]]) -> None:
    """Sums, histograms, counters, errors and timelines of a merge are the sums of its parts."""
    for old in tmp_path.glob("*.qprof"):
        old.unlink()
    parts = [record(tmp_path / f"{n}.qprof", *sqls) for n, sqls in enumerate(programs)]
    merge_traces("all.qprof", [str(tmp_path / f"{n}.qprof") for n in range(len(parts))])
    merged = read_profile("all.qprof")
    for figure in FIGURES:
        total: Counter[tuple[str, str]] = Counter()
        for part in parts:
            total.update(by_operation(part, figure))
        assert total == by_operation(merged, figure)

    def histograms(profiles: list[Profile]) -> Counter[tuple[str, int]]:
        buckets: Counter[tuple[str, int]] = Counter()
        for a in (a for p in profiles for a in p.aggregates):
            for bucket, executions in a.histogram.items():
                buckets[a.statement, bucket] += executions
        return buckets

    assert histograms(parts) == histograms([merged])
    for part_figures in ("vm_steps", "counted", "full_scan_steps"):
        assert sum(getattr(a, part_figures) for p in parts for a in p.aggregates) == sum(
            getattr(a, part_figures) for a in merged.aggregates
        )
    assert sum(e.count for p in parts for e in p.errors) == sum(e.count for e in merged.errors)
    assert sum(i.calls for p in parts for i in p.timeline) == sum(i.calls for i in merged.timeline)
    assert len(merged.processes) == len(parts)
    worst = max((a.max_ns for p in parts for a in p.aggregates), default=0)
    assert worst == max((a.max_ns for a in merged.aggregates), default=0)


def test_min_and_max_of_a_merge_are_those_of_the_parts() -> None:
    """An aggregate with calls in only one part keeps that part's shortest call."""
    record("a.qprof", "SELECT a FROM t", "SELECT a FROM t")
    record("b.qprof", "SELECT a FROM t")
    merge_traces("c.qprof", ["a.qprof", "b.qprof"])
    extremes = [
        (min(a.min_ns for a in p.aggregates), max(a.execution_max_ns for a in p.aggregates))
        for p in map(read_profile, ("a.qprof", "b.qprof", "c.qprof"))
    ]
    assert extremes[2] == (
        min(extremes[0][0], extremes[1][0]),
        max(extremes[0][1], extremes[1][1]),
    )


def test_the_output_may_be_an_input() -> None:
    """`queryprof merge a.qprof a.qprof b.qprof` adds b to a."""
    record("a.qprof", "SELECT a FROM t")
    record("b.qprof", "SELECT a FROM t")
    merge_traces("a.qprof", ["a.qprof", "b.qprof"])
    assert by_operation(read_profile("a.qprof"))["SELECT a FROM t", "execute"] == 2
    assert sorted(os.listdir()) == ["a.qprof", "b.qprof"]


def make_bad(kind: str, path: Path) -> None:
    if kind == "text":
        path.write_text("hello " * 100)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "another database":
        sqlite3.connect(path).executescript("CREATE TABLE t (a)").connection.close()
    elif kind == "directory":
        path.mkdir()
    elif kind != "missing":
        record(path, *(f"SELECT {i} AS a{i}" for i in range(300)))
        if kind == "truncated":
            os.truncate(path, 20_000)
        elif kind == "newer":
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA user_version = 99")
            connection.close()
        elif kind == "corrupt":
            data = bytearray(path.read_bytes())
            data[5000:60_000] = b"\x5a" * 55_000
            path.write_bytes(data)


BAD = {
    "text": "not a queryprof trace",
    "empty": "not a queryprof trace",
    "another database": "a SQLite database, but not a queryprof trace",
    "directory": "no traces",
    "missing": "no such trace",
    "truncated": "damaged: ",
    "newer": "has trace version ",
    "corrupt": "damaged: ",
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", [("report",), ("merge", "out.qprof")])
@pytest.mark.repeats
def test_bad_traces_get_one_line_and_status_2(
    queryprof: Run, kind: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    """The error is one line for any bad file, and no file is left."""
    make_bad(kind, tmp_path / "bad.qprof")
    result = queryprof(*command, "bad.qprof")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert f"bad.qprof: {BAD[kind]}" in result.stderr
    assert "Traceback" not in result.stderr
    assert [p.name for p in tmp_path.iterdir() if p.name != "bad.qprof"] == []


def test_nothing_but_a_trace_is_overwritten(queryprof: Run, tmp_path: Path) -> None:
    """No command replaces a file that is not a trace."""
    precious = tmp_path / "precious.db"
    connection = sqlite3.connect(precious)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    record("a.qprof", "SELECT 1")
    before = precious.read_bytes()
    program = tmp_path / "p.py"
    program.write_text("print('ran')")
    assert queryprof("merge", precious, "a.qprof").returncode == 2
    result = queryprof("run", "-o", precious, program)
    assert (result.returncode, result.stdout) == (2, "")
    with pytest.raises(TraceError, match="choose another name"):
        qp.install(precious)
    with pytest.raises(TraceError, match="choose another name"), qp.profile(precious):
        pass
    assert precious.read_bytes() == before


def test_a_trace_is_for_its_owner_alone() -> None:
    """The mode is 0600, because SQL texts and file names belong to the program."""
    record("a.qprof", "SELECT 1")
    merge_traces("b.qprof", ["a.qprof"])
    for path in ("a.qprof", "b.qprof"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_trace_in_a_read_only_place_can_be_read(tmp_path: Path) -> None:
    """Reading changes nothing, not even next to the file."""
    record("a.qprof", "SELECT 1")
    before = Path("a.qprof").read_bytes()
    read_profile("a.qprof")
    assert Path("a.qprof").read_bytes() == before
    assert os.listdir() == ["a.qprof"]


def test_timeline_coarsens_exactly() -> None:
    """However far apart they are, there are at most 512 aligned intervals, and nothing is lost."""
    store = TraceStore(":memory:")
    width = 1 << 27
    spread = [width * 3**n for n in range(14)]
    for start in spread:
        store.add_intervals("timeline", width, [(start, 1, 2, 3)])
    rows = store.connection.execute("SELECT * FROM timeline").fetchall()
    (wide,) = store.connection.execute("SELECT value FROM setting").fetchone()
    store.close()
    assert wide & (wide - 1) == 0
    assert all(start % wide == 0 for start, *_ in rows)
    assert (rows[-1][0] - rows[0][0]) // wide < 512
    assert [sum(column) for column in zip(*rows, strict=True)][1:] == [14, 28, 42]


def test_every_column_of_the_schema_has_a_unit() -> None:
    """Times are named _ns, instants _unix_ns. Other columns have a comment or are plain."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
        for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"):
            assert not name.endswith(("_ms", "_s", "_us", "time", "duration")), (table, name)
    connection.close()


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    """No literal and no parameter is in the file, except on request."""
    connection = sqlite3.connect(":memory:")
    with qp.profile("a.qprof"):
        connection.execute("SELECT 'hunter2', ?", ("correct horse",)).fetchall()
        try:
            connection.execute("SELECT 'hunter2' FROM nowhere")
        except sqlite3.Error:
            pass
    connection.close()
    data = Path("a.qprof").read_bytes()
    assert b"hunter2" not in data
    assert b"correct horse" not in data


def test_parameters_are_kept_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--parameters keeps SQL texts and parameters of the slowest executions, of plain
    types only.
    """
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")

    class Shy(int):
        def __repr__(self) -> str:
            raise AssertionError("it must not be asked")

    connection = sqlite3.connect(":memory:")
    with qp.profile() as recording:
        connection.execute("SELECT 'x', ?, ?", ("horse", Shy(3))).fetchall()
        connection.execute("SELECT :a", {"a": 1.5}).fetchall()
    connection.close()
    shown = {(e.sql, e.parameters) for e in recording.profile.exemplars}
    assert ("SELECT 'x', ?, ?", "'horse', <Shy>") in shown
    assert ("SELECT :a", "a=1.5") in shown


@pytest.mark.parametrize("runs", [3, 30, 200])
def test_parameters_are_kept_where_the_time_is_in_fetching(
    monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    """This includes cursors that are read in turns, and values of any size."""
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE t AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1"
        " FROM c LIMIT 3000) SELECT x FROM c"
    )
    sql = "SELECT x FROM t WHERE x % 2 = ? AND ? <> '' AND ? IS NOT NULL"
    with qp.profile() as recording:
        for first in range(0, runs, 3):
            opened = [
                connection.execute(sql, [n % 2, f"run {n}", b"x" * (n % 2 * 400)])
                for n in range(first, first + 3)
            ]
            for cursor in opened:
                cursor.fetchall()
    connection.close()
    kept = [one for one in recording.profile.exemplars if one.sql == sql]
    assert kept
    assert len(kept) == len(recording.profile.exemplars)
    for one in kept:
        number = int(one.parameters.split("'run ")[1].split("'")[0])
        assert one.parameters == f"{number % 2}, 'run {number}', {b'x' * (number % 2 * 400)!r}"


def test_a_killed_writers_journal_is_rolled_back(tmp_path: Path) -> None:
    """A trace with a hot journal reads as after the last complete flush."""
    record("a.qprof", "SELECT 1")
    connection = sqlite3.connect("a.qprof", isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE aggregate SET count = 99")
    connection.executemany(
        "INSERT INTO statement (text) VALUES (?)", [(f"{i}" * 50,) for i in range(5000)]
    )
    shutil.copy("a.qprof", "b.qprof")
    shutil.copy("a.qprof-journal", "b.qprof-journal")
    connection.close()
    assert by_operation(read_profile("b.qprof"))["SELECT ?", "execute"] == 1


@pytest.mark.slow
def test_what_the_program_reads_and_writes_is_in_its_trace() -> None:
    """The bytes are those of its own calls, without queryprof's own writes."""
    Path("program.py").write_text(
        "import sqlite3, sys, time\n"
        "import queryprof\n"
        "queryprof.install('x.qprof')\n"
        "c = sqlite3.connect(':memory:')\n"
        "for turn in range(25):\n"
        "    for number in range(400):\n"
        "        c.execute(f'SELECT {number} AS c{turn}_{number}').fetchall()\n"
        "    time.sleep(0.1)\n"
        "with open('data', 'wb', buffering=0) as file:\n"
        "    for _ in range(100): file.write(b'x' * 10_000)\n"
        "with open('data', 'rb', buffering=0) as file:\n"
        "    while file.read(10_000): pass\n"
    )
    subprocess.run([sys.executable, "program.py"], check=True, timeout=60)
    (process,) = read_profile("x.qprof").processes
    assert process.read_bytes is not None
    assert process.written_bytes is not None
    assert os.path.getsize("x.qprof") > 1_000_000, "queryprof has written more than the program"
    assert 1_000_000 <= process.written_bytes < 1_050_000
    assert 1_000_000 <= process.read_bytes < 2_500_000, "and what it has imported"
