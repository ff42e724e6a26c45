"""The line of the program that asked, and numbers that are the program's own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import namedtuple
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from core.work_programs import until_ended

import queryprof
from conftest import QUERYPROF
from queryprof.collect.reader import read_profile
from queryprof.model import Aggregate, Profile
from queryprof.session import session

HERE = Path(__file__).name


def executed(profile: Profile, text: str) -> Aggregate:
    (found,) = [a for a in profile.aggregates if text in a.statement and a.operation == "execute"]
    return found


@pytest.mark.parametrize("name", ["<library generated wrapper>", "<string>", "<attrs generated f>"])
@pytest.mark.parametrize("in_module", [True, False])
@pytest.mark.repeats
def test_generated_code_is_not_the_programs(name: str, in_module: bool) -> None:
    """Neither in a namespace of its own, nor in the program's module: its caller is."""
    space: dict[str, Any] = dict(globals()) if in_module else {}
    exec(compile("def wrapper(f, *args): return f(*args)", name, "exec"), space)
    connection = sqlite3.connect(":memory:")

    def ask() -> None:
        space["wrapper"](connection.execute, "SELECT 1 AS own")

    with queryprof.profile() as recording:
        ask()
    connection.close()
    path = executed(recording.profile, "own").path
    assert (path[0].function.rpartition(".")[2], Path(path[0].file).name) == ("ask", HERE)
    assert not any(frame.file.startswith("<") for frame in path)


def test_a_namedtuple_that_asks_when_it_is_made() -> None:
    """Its __new__ is made by the standard library."""
    connection = sqlite3.connect(":memory:")
    row = namedtuple("row", "a")  # noqa: PYI024 the generated code is what is tested
    with queryprof.profile() as recording:
        row(connection.execute("SELECT 1 AS own"))
    connection.close()
    assert Path(executed(recording.profile, "own").path[0].file).name == HERE


@pytest.mark.parametrize("way", ["-c", "-"])
@pytest.mark.repeats
def test_code_that_is_typed_in_is_the_programs(tmp_path: Path, way: str) -> None:
    code = (
        "import queryprof, sqlite3; queryprof.install('x.qprof')\n"
        "def ask(): sqlite3.connect(':memory:').execute('SELECT 1 AS own')\nask()\n"
    )
    arguments = [way, code] if way == "-c" else [way]
    subprocess.run([sys.executable, *arguments], cwd=tmp_path, input=code, text=True, check=True)
    frame = executed(read_profile(str(tmp_path / "x.qprof")), "own").path[0]
    assert (frame.function, frame.line, frame.kind) == ("ask", 2, "user")


def test_code_that_is_typed_at_a_librarys_console(tmp_path: Path) -> None:
    """Without a frame of the program's, its innermost frame is better than nothing."""
    code = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1 AS own')\n"
    command = [QUERYPROF, "run", "--no-report", "-o", "x.qprof", "-m", "code"]
    subprocess.run(command, cwd=tmp_path, input=code, text=True, check=True, capture_output=True)
    path = executed(read_profile(str(tmp_path / "x.qprof")), "own").path
    assert [frame.file for frame in path] == ["<console>"]


TASKS = """
import asyncio, aiosqlite, queryprof, sys
queryprof.install("x.qprof")

async def wanted(database):
    return await asyncio.gather(*[database.execute_fetchall("SELECT 1 AS own") for _ in range(20)])

async def grouped(database):
    tasks = [asyncio.create_task(as_library(database)) for _ in range(5)]
    await asyncio.gather(*tasks)

async def as_library(database):
    await database.execute("SELECT 2 AS second")

async def main():
    async with aiosqlite.connect(":memory:") as database:
        await wanted(database)
        await grouped(database)

asyncio.run(main())
"""


def test_tasks_of_a_librarys_coroutines(tmp_path: Path) -> None:
    """They belong to the line that made them; the program's own coroutines to themselves, and are
    called by the line that made their task.
    """
    pytest.importorskip("aiosqlite")
    (tmp_path / "p.py").write_text(TASKS)
    subprocess.run([sys.executable, "p.py"], cwd=tmp_path, check=True)
    profile = read_profile(str(tmp_path / "x.qprof"))
    own = executed(profile, "own")
    assert own.count == 20
    assert [(frame.function, frame.line) for frame in own.path[:2]] == [("wanted", 6), ("main", 17)]
    second = executed(profile, "second").path  # a comprehension is a function up to 3.11
    assert second[0].function == "as_library"
    assert list(dict.fromkeys(frame.line for frame in second)) == [13, 9, 18, 20]


@pytest.mark.once
def test_a_thread_that_ends_is_counted_once(tmp_path: Path) -> None:
    """It asked, lived over a flush, and ended: its CPU time and bytes are its own, once."""
    size = 10_000_000
    used_s = []

    def work() -> None:
        connection = sqlite3.connect(":memory:")
        connection.execute("SELECT 1").fetchall()
        connection.close()
        while time.thread_time() < 0.3:
            pass
        with open("/dev/zero", "rb", buffering=0) as file:
            file.read(size)
        session.settle()
        used_s.append(time.thread_time())

    with queryprof.profile(tmp_path / "x.qprof") as recording:
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        until_ended(thread)
        session.settle()
        connection = sqlite3.connect(":memory:")
        connection.execute("SELECT 2")
        connection.close()
    usage = [u for u in recording.profile.thread_usage if u.thread.name == "worker"]
    if not os.path.exists("/proc/self/task"):
        pytest.skip("this system counts no threads")
    assert sum(u.user_ns + u.system_ns for u in usage) == pytest.approx(used_s[0] * 1e9, abs=5e7)
    assert size <= sum(u.read_bytes for u in usage) < 1.2 * size


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="this system counts no threads")
def test_a_thread_is_counted_once_while_it_lives_and_when_it_ends() -> None:
    """What /proc shows of it in whole ticks while it lives is left out of what it says at
    its end.
    """
    seen: list[float] = []

    def work() -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT 1").fetchall()
        while time.thread_time() < 0.3:
            pass
        session.settle()
        session.settle()
        while time.thread_time() < 0.4:
            pass
        seen.append(time.thread_time())

    with queryprof.profile() as recording:
        thread = threading.Thread(target=work, name="ending")
        thread.start()
        until_ended(thread)
    (used,) = (u for u in recording.profile.thread_usage if u.thread.name == "ending")
    assert seen[0] - 1e-4 <= (used.user_ns + used.system_ns) / 1e9 < seen[0] + 0.05


def test_rows_that_the_driver_does_not_count() -> None:
    """A change after WITH, and a script: SQLite knows how many."""
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a)")
        connection.execute(
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 50)"
            " INSERT INTO t SELECT n FROM r"
        )
        connection.execute(
            "WITH x(a) AS (SELECT 7) UPDATE t SET a = 0 WHERE a IN (SELECT a FROM x)"
        )
        connection.execute("WITH x(a) AS (SELECT 7) SELECT a FROM x")
        connection.executescript("INSERT INTO t VALUES (1), (2), (3); DELETE FROM t WHERE a > 40")
        connection.close()
    rows = {a.statement.split("(")[0] + a.operation: a.rows for a in recording.profile.aggregates}
    assert rows["WITH RECURSIVE rexecute"] == 50
    assert sorted(a.rows for a in recording.profile.aggregates if "WITH x" in a.statement) == [0, 1]
    assert rows["INSERT INTO t VALUES executescript"] == 13


@pytest.mark.once
def test_what_new_statements_cost_is_counted() -> None:
    """Thousands of different texts cost queryprof more than thousands of equal ones."""

    def cost_ns(text: str) -> int:
        connection = sqlite3.connect(":memory:")
        with queryprof.profile() as recording:
            for number in range(3000):
                connection.execute(text.format(number))
        connection.close()
        return recording.profile.processes[0].flush_ns

    different, equal = "SELECT {0} AS c{0}", "SELECT {0}"
    assert min(cost_ns(different) for _ in range(4)) > min(cost_ns(equal) for _ in range(4))


MAKERS = """
import asyncio, gc, sqlite3
connection = sqlite3.connect(":memory:")
async def work():
    await asyncio.sleep(0)
    connection.execute("SELECT 7").fetchall()
async def noted():
    for _ in range(50):
        await asyncio.create_task(work())
async def unnoted():
    for _ in range(50):
        await asyncio.Task(work())
async def many():
    await asyncio.gather(*[asyncio.create_task(work()) for _ in range(3000)])
async def main():
    await noted()
    await unnoted()
    await many()
asyncio.run(main())
"""


def test_a_task_has_the_line_that_made_it_and_no_other(tmp_path: Path) -> None:
    """Tasks come and go at the same addresses; one that nobody noted has no line of another."""
    (tmp_path / "p.py").write_text(MAKERS)
    queryprof_ = [sys.executable, "-m", "queryprof", "run", "--no-report", "-o", "x.qprof"]
    subprocess.run([*queryprof_, "p.py"], cwd=tmp_path, check=True)
    counts: dict[str, int] = {}
    for one in read_profile(str(tmp_path / "x.qprof")).aggregates:
        if one.operation == "execute":
            maker = one.path[1].function if len(one.path) > 1 else ""
            counts[maker] = counts.get(maker, 0) + one.count
    assert counts.pop("noted") == 50
    assert sum(count for maker, count in counts.items() if maker.startswith("many")) == 3000
    assert "unnoted" not in counts
    assert sum(counts.values()) == 3050
