"""Windows in rare states: damaged, removed, forked, read or ended meanwhile."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from core.loop_programs import until_seen
from core.test_windows import ONE, execute, parts, recorded
from core.window_programs import run

import queryprof
from conftest import Run, by_operation
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile, read_windows
from queryprof.collect.recordings import MovedError, recordings_at
from queryprof.core import _core
from queryprof.errors import SessionError
from queryprof.model import Exemplar, LockEvent, StallEvent, Thread
from queryprof.recorder.session import session
from queryprof.region.part_names import parts_by_process
from queryprof.region.region_files import regions_of_trace
from queryprof.trace.split_events import NEAR_NS, unique_exemplars, unique_locks, unique_stalls

pytestmark = pytest.mark.once


def three_windows() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        for _ in range(3):
            execute(connection, 10)
            border()
    connection.close()


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("fault", ["empty", "cut", "gone", "directory"])
@pytest.mark.repeats
def test_an_unreadable_window_is_reported(queryprof: Run, place: int, fault: str) -> None:
    """The others are read, and the report is incomplete."""
    three_windows()
    path = parts()[place]
    content = path.read_bytes()
    path.unlink()
    if fault == "directory":
        path.mkdir()
    elif fault != "gone":
        path.write_bytes(b"" if fault == "empty" else content[:5000])
    found = by_operation(read_profile("x.qprof"))[ONE]
    assert found == (30 if place == 3 else 20)
    text = " ".join(queryprof("report", "x.qprof").stdout.split())
    is_seen = fault in ("empty", "cut") or (fault in ("gone", "directory") and place in (1, 2))
    assert ("skipped, and missing in all figures" in text) == is_seen
    if is_seen:
        assert "Complete" not in text
    assert len([*read_windows("x.qprof", print)]) == 3


def test_one_window_is_read_alone(queryprof: Run) -> None:
    three_windows()
    second = read_profile(str(parts()[1]))
    assert by_operation(second)[ONE] == 10
    assert "10 executions" in queryprof("report", str(parts()[1])).stdout
    assert len(parts()) == 4


@pytest.mark.slow
def test_blocks_are_no_windows() -> None:
    """Their parts do not count for the windows to keep, and stay while they are read."""
    connection = sqlite3.connect(":memory:")
    with recorded(kept=2) as border:
        execute(connection, 5)
        for _ in range(20):
            with queryprof.profile():
                execute(connection)
        with queryprof.profile() as long:
            for _ in range(4):
                execute(connection, 2)
                border()
        assert by_operation(long.profile)[ONE] == 8
        border()  # now the old ones are removed: all parts of a window with it
        execute(connection, 3)
    connection.close()
    (process,) = read_profile("x.qprof").processes
    assert process.lost_windows == 4
    assert by_operation(read_profile("x.qprof"))[ONE] == 3


def test_an_exception_of_a_block_is_the_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(":memory:")
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    with recorded():
        execute(connection)
        with pytest.raises(KeyError), queryprof.profile():
            tmp_path.rename(moved)
            raise KeyError
        with pytest.raises(SessionError), queryprof.profile():
            pass
        moved.rename(tmp_path)
    connection.close()
    assert "the recorded block is lost: the recording cannot be loaded" in capsys.readouterr().err
    assert by_operation(read_profile("x.qprof"))[ONE] == 1


FORKS = """
import os, sqlite3, sys
c = sqlite3.connect(":memory:")
c.execute("SELECT ?", (0,)).fetchone()
for _ in range(3):
    pid = os.fork()
    if not pid:
        for number in range(100): c.execute("SELECT ?", (number,)).fetchone()
        END(0)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("end", ["sys.exit", "os._exit"])
def test_the_windows_of_workers_are_named(queryprof: Run, end: str) -> None:
    """They are traces or copies in the directory, or regions in shared memory."""
    result = run(FORKS.replace("END", end), QUERYPROF="shop.qprof", QUERYPROF_WINDOW="1h")
    assert (result.returncode, result.stderr) == (0, "")
    report = queryprof("report", "shop.qprof")
    assert "this recording has 3 more traces" in " ".join(report.stderr.split())
    assert queryprof("merge", "all.qprof", "shop.qprof", "shop-*.qprof").returncode == 0
    profile = read_profile("all.qprof")
    assert by_operation(profile)[ONE] == 301
    assert {process.lost_windows for process in profile.processes} == {0}


def test_a_connection_in_use_at_a_border() -> None:
    """Its cursors may continue. Their executions count with all their time in the window of their
    end.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    inside, goes_on = threading.Event(), threading.Event()

    def wait(value: int) -> int:
        if value:
            inside.set()
            goes_on.wait(60)
        return value

    connection.create_function("wait", 1, wait)
    with recorded() as border:
        open_cursor = connection.execute("VALUES (1), (2), (3)")
        busy = threading.Thread(target=lambda: connection.execute("SELECT wait(1)").fetchall())
        busy.start()
        inside.wait(60)
        border()
        goes_on.set()
        busy.join()
        open_cursor.fetchall()
    connection.close()
    rows = [
        one
        for one in read_profile("x.qprof").aggregates
        if one.statement.startswith("VALUES") and one.operation != "close"
    ]
    (began,) = [one for one in rows if one.operation == "execute"]
    assert sum(began.histogram.values()) == 1
    assert began.execution_max_ns == sum(one.total_ns for one in rows)


def test_more_cursors_than_a_few_are_carried_over() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        cursors = [connection.execute(f"SELECT 1 AS a{n} UNION ALL SELECT 2") for n in range(700)]
        for cursor in cursors:
            cursor.fetchone()
        border()
        for cursor in cursors:
            cursor.fetchall()
    connection.close()
    first, *_ = read_windows("x.qprof", print)
    left = [one for one in first.aggregates if one.histogram and "UNION" in one.statement]
    # Cursors are kept by address, eight per slot: the oldest of more than eight is dropped.
    assert len(left) < len(cursors) / 10


def test_a_copy_beside_its_part_counts_once(tmp_path: Path) -> None:
    """A process that was killed after it wrote a part has left an older copy of its memory."""
    connection = sqlite3.connect(":memory:")
    with recorded() as border:
        execute(connection, 4)
        _core.flush()
        region = Path(_core.region_path()).read_bytes()
        border()
        execute(connection, 5)
    connection.close()
    Path(f"x.qprof.{os.getpid()}.{'0' * 12}.live").write_bytes(region)
    os.chmod(f"x.qprof.{os.getpid()}.{'0' * 12}.live", 0o600)
    assert by_operation(read_profile("x.qprof"))[ONE] == 4 + 5


def test_a_reader_begins_again_when_a_part_ends() -> None:

    connection = sqlite3.connect(":memory:")
    with recorded() as border, ExitStack() as files:
        execute(connection, 4)
        (found,) = recordings_at(os.path.abspath("x.qprof"), files)
        found.refuse_changes()
        border()
        with pytest.raises(MovedError):
            found.refuse_changes()
    connection.close()


def test_an_empty_file_is_no_trace_beside_windows(queryprof: Run) -> None:
    Path("x.qprof").touch()
    three_windows()
    assert by_operation(read_profile("x.qprof"))[ONE] == 30
    assert queryprof("report", "x.qprof").returncode == 0


def test_an_older_trace_stays() -> None:
    connection = sqlite3.connect(":memory:")
    queryprof.install("x.qprof")
    execute(connection, 7)
    queryprof.uninstall()
    connection.close()
    three_windows()
    assert Path("x.qprof").exists()
    assert by_operation(read_profile("x.qprof"))[ONE] == 37


def test_figures_of_removed_windows_go_with_them() -> None:
    connection = sqlite3.connect(":memory:")
    with recorded(kept=1) as border:
        for number in range(300):
            connection.execute(f"SELECT {number} AS b{number}").fetchone()  # new statements cost
        border()
        border()
        execute(connection)
    connection.close()
    (process,) = read_profile("x.qprof").processes
    whole_ns = sum(profile.processes[0].flush_ns for profile in read_windows("x.qprof", print))
    assert process.flush_ns == whole_ns
    assert process.unasked_plans <= 1  # the kept window has one execution


@pytest.mark.skipif(os.getuid() != 0, reason="files of another user are made by root")
def test_parts_of_strangers_are_not_read(tmp_path: Path) -> None:
    three_windows()
    trace = os.path.abspath("x.qprof")
    (mine,) = parts_by_process(trace)
    os.chown(mine[1], 12345, 12345)
    code = (
        "import os, sys; os.setuid(23456); from queryprof.region.part_names import parts_by_process;"
        "print(sum(map(len, parts_by_process(sys.argv[1]))))"
    )
    import subprocess
    import sys

    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o001 == 0:
            pytest.skip("another user cannot look into this directory")
    os.chmod(tmp_path, 0o755)
    result = subprocess.run(
        [sys.executable, "-c", code, trace], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) == len(mine) - 1  # those of the directory's owner


def event(start: int, duration: int, **further: object) -> StallEvent:
    return StallEvent(None, (), (), start, duration)  # type: ignore[arg-type]


def test_a_stall_over_a_border_is_one() -> None:
    """Its start differs by some nanoseconds. The next stall begins after its end."""
    twice = [event(1000, 500), event(998, 900), event(1900, 50), event(1898, 5)]
    assert unique_stalls(twice) == [event(998, 900), event(1900, 50)]
    assert unique_stalls(apart := [event(1000, 500), event(1500, 500)]) == apart


def hold(
    start: int, duration: int, process: int = 1, kind: str = "write", number: int = 1
) -> LockEvent:
    thread = Thread(process, "main")
    return LockEvent(kind, "a.db", "S", (), "", thread, "S", (), start, duration, number)


def test_a_lock_over_a_border_is_one() -> None:
    twice = [hold(1000, 500), hold(999, 900)]
    assert unique_locks(twice, {1}) == (hold(999, 900),)
    assert len(unique_locks(twice, set())) == 2  # a process without windows
    assert len(unique_locks([hold(1000, 500), hold(999, 900, number=2)], {1})) == 2
    assert len(unique_locks([hold(1000, 500, kind="wait"), hold(999, 900, kind="wait")], {1})) == 2
    assert len(unique_locks([hold(1000, 500, number=0), hold(999, 900, number=0)], {1})) == 2


def execution(start: int, duration: int) -> Exemplar:
    thread = Thread(1, "main")
    return Exemplar("S", (), "", thread, "execute", start, duration, 0, (), None, None)


def test_an_execution_over_a_border_is_one() -> None:
    long = 10 * NEAR_NS
    twice = [execution(100, long), execution(90, 3 * long)]
    assert unique_exemplars(twice, {1}) == [execution(90, 3 * long)]
    assert len(unique_exemplars(twice, set())) == 2
    apart = [execution(0, long), execution(NEAR_NS + 1, long)]
    assert len(unique_exemplars(apart, {1})) == 2
    assert len(unique_exemplars([execution(0, 5), execution(5, 5)], {1})) == 2


def test_stalls_over_borders_are_counted_once() -> None:
    import asyncio

    connection = sqlite3.connect(":memory:")

    async def main() -> None:
        for _ in range(3):
            _core.end_window(time.time_ns())
            with until_seen() as seen:
                seen.wait()
            connection.execute("SELECT 1").fetchone()
            _core.end_window(time.time_ns())
            await asyncio.sleep(0)

    with recorded():
        asyncio.run(main())
    connection.close()
    (loop,) = read_profile("x.qprof").loops
    (finding,) = Report(read_profile("x.qprof")).loops
    assert finding
    assert len(loop.stall_events) == 3


def test_a_finalizer_that_ends_the_recording_at_a_border() -> None:
    result = run(
        "import gc, sqlite3, time, queryprof\n"
        "from queryprof.core import _core\n"
        "queryprof.install('x.qprof', window='1h')\n"
        "c = sqlite3.connect(':memory:'); _core.take_changed_rows(True)\n"
        "for i in range(200): c.execute('SELECT 1 AS q%d' % i).fetchone()\n"
        "class F:\n"
        "    def __init__(self): self.me = self\n"
        "    def __del__(self): queryprof.uninstall()\n"
        "gc.collect(); gc.disable(); F()\n"
        "gc.set_threshold(20, 1000, 1000); gc.enable()\n"
        "_core.end_window(time.time_ns() + 3600 * 10**9)\n"
        "print('ended')\n"
    )
    assert (result.returncode, result.stdout) == (0, "ended\n"), result.stderr
    assert session.is_on is False


def test_a_region_is_given_its_places_before_a_recording() -> None:
    result = run(
        "from queryprof.core import _core\n"
        "_core.share_region('', '', '')\n"
        "_core.share_region('/tmp', 'x', '/tmp/x')\n"
        "print('goes on')\n"
    )
    assert (result.returncode, result.stdout) == (0, "goes on\n"), result.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="a file is given to another user by root")
def test_what_root_moves_to_the_disk_stays_its_users(tmp_path: Path, queryprof: Run) -> None:
    result = run(
        "import os, signal, sqlite3, queryprof\n"
        "queryprof.install('x.qprof', window='1h')\n"
        "sqlite3.connect(':memory:').execute('SELECT 1').fetchone()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert result.returncode == -9, result.stderr
    (region,) = regions_of_trace("x.qprof")
    os.chown(tmp_path, 12345, 12346)
    os.chown(region, 12345, 12346)
    assert "1 execution" in queryprof("report", "x.qprof").stdout
    (copy,) = tmp_path.glob("x.qprof.*.live")
    assert (copy.stat().st_uid, copy.stat().st_gid) == (12345, 12346)


def test_a_loop_keeps_its_kind_and_steps_in_the_next_window() -> None:
    """It began in the window before."""
    with recorded() as border:

        async def crosses() -> None:
            border()
            await asyncio.sleep(0)

        running = asyncio.new_event_loop()
        running.run_until_complete(crosses())  # once: asyncio.run() would begin a loop again
        running.close()
    (loop,) = read_profile(str(parts()[-1])).loops
    assert (loop.kind, loop.has_steps) == ("asyncio", True)
    assert loop.steps
