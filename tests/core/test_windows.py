"""A recording in windows adds up to the same as one without windows."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from core.window_programs import SAME_WORK, run

import queryprof
from conftest import Run, by_operation
from queryprof.collect.reader import opened_trace, read_profile
from queryprof.core import _core
from queryprof.recorder.session import session
from queryprof.region.part_names import part_number
from queryprof.region.region import ENDED, PART, Region, opened_region
from queryprof.region.region_files import regions_of_trace
from queryprof.trace.declaration import SUM
from queryprof.trace.tables import TABLES

pytestmark = pytest.mark.once

HOUR_NS, YEARS_NS = 3600 * 10**9, 10**18
ONE = ("SELECT ?", "execute")
OF_TIME = {"stack_sample", "parameter_sample", "stall", "lag", "lag_histogram"}
"""Tables whose rows depend on how long something took."""
OF_CHANCE = ("_ns", "_ns2", "ns", "page_fetches", "page_fetch_samples", "_switches", "read_bytes")


def counts(path: Path) -> dict[tuple[str, str], int]:
    """Return all sums of a trace except times, by table and column."""
    found = {}
    with opened_trace(str(path)) as trace:
        for table in TABLES:
            if table.name in {"setting", "process", *OF_TIME}:
                continue
            rows = list(trace.rows(table.name, table.names))
            if table.name == "lock_hold":  # whether reads are kept depends on the clock
                rows = [row for row in rows if row[table.names.index("kind")] == "write"]
            for at, column in enumerate(table.columns):
                is_of_chance = (table.name, column.name) == ("file_work", "calls")  # these too
                is_of_chance |= column.name.endswith(OF_CHANCE)
                if column.role == SUM and not is_of_chance:
                    found[table.name, column.name] = sum(row[at] or 0 for row in rows)
    return found


@pytest.mark.slow
def test_windows_add_up_to_a_recording_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program has threads, a loop, executemany, cursors over three window ends, a forked child and
    locks. Every sum of every table is equal, except times and samples.
    """
    found = {}
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # only the first run would write them
    for kind in ("plain", "windows"):
        (tmp_path / kind).mkdir()
        monkeypatch.chdir(tmp_path / kind)
        result = run(SAME_WORK, kind)
        assert (result.returncode, result.stderr) == (0, "")
        (child,) = {part.name.split(".")[0] for part in Path().iterdir() if "-" in part.name[:3]}
        found[kind] = [counts(Path(f"{name}.qprof")) for name in ("x", child)]
        assert Path("x.qprof").exists() == (kind == "plain")
    for windows, plain in zip(found["windows"], found["plain"], strict=True):
        unequal = {
            name: (windows.get(name), plain.get(name))
            for name in {*windows, *plain}
            if windows.get(name) != plain.get(name)
        }
        assert unequal == {}
    assert found["plain"][0]["aggregate", "count"] > 400
    assert all(value for name, value in found["plain"][0].items() if name[0] == "histogram")


def parts() -> list[Path]:
    return sorted(Path().glob("x.qprof.*.live"), key=lambda path: part_number(str(path)))


@contextmanager
def recorded(kept: int = 48) -> Iterator[Callable[[], None]]:
    """Record this process in windows. Return a function that ends one."""
    queryprof.install("x.qprof", window="1h")
    _core.configure_windows(YEARS_NS, kept)  # none ends by itself
    try:
        yield lambda: _core.end_window(time.time_ns())
    finally:
        queryprof.uninstall()


def execute(connection: sqlite3.Connection, times: int = 1) -> None:
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()


def test_an_execution_counts_with_all_its_time_where_it_ends() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    with recorded() as border:
        long = connection.execute("SELECT a FROM t")
        for _ in range(3):
            long.fetchone()
            border()
        border()  # a window without a fetch
        long.fetchall()
    connection.close()
    rows = [one for one in read_profile("x.qprof").aggregates if one.statement == "SELECT a FROM t"]
    (began,) = [one for one in rows if one.operation == "execute"]
    assert (began.count, sum(began.histogram.values())) == (1, 1)
    assert began.execution_max_ns == sum(one.total_ns for one in rows)
    assert [bucket for bucket, count in began.histogram.items() if count] == [
        _core.histogram_bucket(began.execution_max_ns)
    ]
    assert sum(one.rows for one in rows) == 5


def test_the_call_after_a_border_is_the_next_windows() -> None:
    """Everything before it is in a part. Only that call continues."""
    connection = sqlite3.connect(":memory:")
    with recorded():
        _core.configure_windows(1, 48)  # every turn is at a window end
        executed = 0
        while not parts():
            execute(connection)
            executed += 1
        with opened_region(str(parts()[0])) as part:
            ended_ns = int(part["alive_unix_ns"])
        assert session.is_on
        ((of_part, _),) = [_calls(str(path)) for path in parts()]
    connection.close()
    assert of_part == 2 * executed - 1 or of_part == 2 * executed - 2  # execute, or fetchone
    assert read_profile("x.qprof").processes[0].end_unix_ns >= ended_ns
    assert by_operation(read_profile("x.qprof"))[ONE] == executed


def _calls(path: str) -> tuple[int, int]:
    from queryprof.region.pending import aggregate_rows

    with opened_region(path) as region:
        rows = [row for row in aggregate_rows(region) if row.count]
        return sum(row.count for row in rows), len(rows)


def test_a_window_ends_when_it_last_did_something() -> None:
    """An idle time belongs to no window: the next window begins at its start time, not at the next
    call.
    """
    connection = sqlite3.connect(":memory:")
    idle_ns = 50_000_000
    with recorded():
        execute(connection)
        last_ns = time.time_ns()
        time.sleep(idle_ns / 1e9)
        _core.configure_windows(HOUR_NS, 48)
        _core.end_window(time.time_ns() + HOUR_NS)
        with opened_region(str(parts()[0])) as part:
            assert int(part["alive_unix_ns"]) < last_ns + idle_ns / 2
        header = Region(_core.region())
        assert header["part_start_unix_ns"] % HOUR_NS == 0
        execute(connection)
    connection.close()


def test_the_latest_windows_are_kept(queryprof: Run) -> None:
    connection = sqlite3.connect(":memory:")
    with recorded(kept=2) as border:
        for number in range(1, 6):
            execute(connection, number)
            border()
        execute(connection, 6)
    connection.close()
    assert [part_number(str(path)) for path in parts()] == [5, 6]
    (process,) = read_profile("x.qprof").processes
    assert (process.lost_windows, process.clean_end) == (4, True)
    assert process.recorded_unix_ns > process.start_unix_ns
    assert by_operation(read_profile("x.qprof"))[ONE] == 5 + 6
    result = queryprof("report", "x.qprof")
    assert "4 older windows were removed, to keep the latest (QUERYPROF_KEEP)" in " ".join(
        result.stdout.split()
    )
    document = json.loads(queryprof("report", "--format", "json", "x.qprof").stdout)
    assert document["processes"][0]["lost_windows"] == 4


def test_as_many_as_are_kept_lose_nothing() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded(kept=3) as border:
        for _ in range(2):
            execute(connection)
            border()
        execute(connection)
    connection.close()
    assert len(parts()) == 3
    (process,) = read_profile("x.qprof").processes
    assert process.lost_windows == 0


def execute_for_rounds(connection: sqlite3.Connection, rounds: int) -> int:
    """Execute until this many rounds of periodic work have passed. Return the number of executions."""
    first, executed = Region(_core.region())["rounds"], 0
    while Region(_core.region())["rounds"] < first + rounds:
        execute(connection)
        executed += 1
    return executed


@pytest.mark.parametrize("fault", ["no directory", "too large"])
@pytest.mark.repeats
def test_a_window_that_cannot_be_written_is_in_the_next(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(":memory:")
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    executed = 0
    with recorded() as border:
        _core.configure_windows(time.time_ns(), 48)  # one window ends now; the next ends in years
        if fault == "too large":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        else:
            tmp_path.rename(moved)
        executed += execute_for_rounds(connection, 2)
        if fault == "too large":
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        else:
            moved.rename(tmp_path)
        executed += execute_for_rounds(connection, 2)
        assert not parts()  # the next window end retries
        border()
        assert len(parts()) == 1
        execute(connection, 5)
    connection.close()
    assert by_operation(read_profile("x.qprof"))[ONE] == executed + 5
    (line,) = capsys.readouterr().err.splitlines()  # once
    why = "No such file or directory" if fault == "no directory" else "File too large"
    assert (
        line == f"queryprof: a window is not written: {why}; what it has is kept for the next one"
    )


def test_a_part_never_replaces_a_file() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        others = [Path(f"{session.parts.prefix}-{number}.live{new}") for number, new in OTHERS]
        for one in others:
            one.write_text("mine")
        execute(connection)
        border()
        execute(connection)
    connection.close()
    assert [one.read_text() for one in others] == ["mine"] * len(others)
    for one in others:
        one.unlink()
    assert [part_number(str(path)) for path in parts()] == [3, 4]
    assert by_operation(read_profile("x.qprof"))[ONE] == 2


OTHERS = ((1, ""), (2, ".new"))


def test_a_clock_that_is_set_back_ends_the_window() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded():
        execute(connection)
        _core.configure_windows(HOUR_NS, 48)
        _core.end_window(time.time_ns() + HOUR_NS)
        _core.set_wall_clock(time.time_ns())
        while len(parts()) < 2:
            execute(connection)
        with opened_region(str(parts()[1])) as part:
            first_ns = int(part["part_start_unix_ns"])
    connection.close()
    with opened_region(str(parts()[2])) as part:
        assert int(part["part_start_unix_ns"]) <= time.time_ns() < first_ns
    assert read_profile("x.qprof").processes[0].clean_end


def test_it_leaves_its_last_window_and_no_trace() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        execute(connection, 2)
        border()
        execute(connection, 3)
        assert regions_of_trace(str(Path("x.qprof").resolve()))
    connection.close()
    assert {path.suffix for path in Path().iterdir()} == {".live"}
    assert not regions_of_trace(str(Path("x.qprof").resolve()))
    states = []
    for path in parts():
        with opened_region(str(path)) as part:
            states.append(part.state)
    assert states == [PART, ENDED]
    for _ in range(2):  # reading takes nothing away
        assert by_operation(read_profile("x.qprof"))[ONE] == 2 + 3


def test_one_that_records_nothing_leaves_an_empty_window() -> None:
    with recorded():
        pass
    assert len(parts()) == 1
    assert read_profile("x.qprof").processes[0].clean_end


def test_a_killed_process(queryprof: Run) -> None:
    """Its windows and its memory are read together, and stay."""
    result = run(
        "import os, signal, sqlite3, time\n"
        "import queryprof\n"
        "from queryprof.core import _core\n"
        "queryprof.install('x.qprof', window='5m')\n"
        "c = sqlite3.connect(':memory:')\n"
        "for number in range(10):\n"
        "    c.execute('SELECT ?', (number,)).fetchone()\n"
        "    if number == 6: _core.end_window(time.time_ns() + 300 * 10**9)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert result.returncode == -9
    for _ in range(2):
        profile = read_profile("x.qprof")
        assert by_operation(profile)[ONE] == 10
        assert not profile.processes[0].clean_end
        assert len(list(Path().glob("x.qprof.*-*.live"))) == 1
    assert not regions_of_trace(str(Path("x.qprof").resolve()))  # it is on disk now, once
    assert len(list(Path().glob("x.qprof.*.live"))) == 2
    assert "has no recorded end" in " ".join(queryprof("report", "x.qprof").stdout.split())


def test_its_run_time_is_of_all_windows() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        began_ns = time.time_ns()
        execute(connection)
        border()
        execute(connection)
        border()
        ended_ns = time.time_ns()
        execute(connection)
    connection.close()
    (process,) = read_profile("x.qprof").processes
    assert process.recorded_unix_ns <= began_ns
    assert process.end_unix_ns >= ended_ns


def test_processes_of_one_path_add_up(queryprof: Run) -> None:
    for times in (2, 3):
        connection = sqlite3.connect(":memory:")
        with recorded() as border:
            execute(connection, times)
            border()
            execute(connection, times)
        connection.close()
    assert by_operation(read_profile("x.qprof"))[ONE] == 2 * (2 + 3)
    assert queryprof("merge", "all.qprof", ".").returncode == 0
    assert by_operation(read_profile("all.qprof"))[ONE] == 2 * (2 + 3)


def test_a_block_inside_windows() -> None:
    """profile() reads its own part, and removes none."""
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        execute(connection, 2)
        border()
        with queryprof.profile() as block:
            execute(connection, 3)
            border()
            execute(connection, 4)
        execute(connection, 5)
    connection.close()
    assert by_operation(block.profile)[ONE] == 3 + 4
    assert by_operation(read_profile("x.qprof"))[ONE] == 2 + 3 + 4 + 5


def test_a_recorded_command_has_one_trace(queryprof: Run) -> None:
    program = Path("program.py")
    program.write_text("import sqlite3\nsqlite3.connect(':memory:').execute('SELECT ?', (1,))\n")
    result = queryprof(
        "run", "--no-report", "-o", "y.qprof", program, env={"QUERYPROF_WINDOW": "1h"}
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert [path.name for path in Path().glob("y*")] == ["y.qprof"]
    assert read_profile("y.qprof").processes[0].window_start_unix_ns is None


def test_it_is_as_without_where_there_are_none(tmp_path: Path) -> None:
    connection = sqlite3.connect(":memory:")
    queryprof.install("x.qprof")
    execute(connection)
    queryprof.uninstall()
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.qprof"]
    (process,) = read_profile("x.qprof").processes
    assert (process.window_start_unix_ns, process.lost_windows) == (None, None)
    assert os.path.getsize("x.qprof")
