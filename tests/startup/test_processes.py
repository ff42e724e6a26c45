"""Recording survives threads, fork, spawn, every kind of exit, and full disks."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run, by_operation, traces_in
from queryprof.collect.reader import read_profile
from queryprof.model import Profile
from queryprof.region.region_files import regions_of_trace

Script = Callable[..., Path]

WORK = """
import sqlite3
def work(times):
    connection = sqlite3.connect(":memory:")
    for i in range(times):
        connection.execute("SELECT ?", (i,)).fetchone()
"""
SELECT = ("SELECT ?", "execute")
SCAN = """
table = sqlite3.connect(":memory:")
table.execute("CREATE TABLE t (a, b)")
table.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(20_000)])
for n in range(20):
    table.execute("SELECT b FROM t WHERE a = ?", (n,)).fetchall()
"""


def run_program(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **environment},
    )


def recorded(queryprof: Run, path: Path) -> tuple[subprocess.CompletedProcess[str], Profile]:
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    return result, read_profile("x.qprof")


def test_fifty_threads(queryprof: Run, script: Script) -> None:
    """Every call of every thread is counted under the thread's name."""
    path = script(
        WORK + "import threading\n"
        "threads = [threading.Thread(target=work, args=(200,), name=f't{i}') for i in range(50)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    result, profile = recorded(queryprof, path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(profile)[SELECT] == 50 * 200
    counts = {
        a.thread.name: a.count for a in profile.aggregates if (a.statement, a.operation) == SELECT
    }
    assert counts == {f"t{i}": 200 for i in range(50)}


EXEC = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'pass'])"


@pytest.mark.parametrize("ending", ["", "import sys; sys.exit(0)", "import os; os._exit(0)", EXEC])
@pytest.mark.repeats
def test_however_the_process_ends(queryprof: Run, script: Script, ending: str) -> None:
    """Nothing is lost at a normal end, at sys.exit, os._exit and exec."""
    result, profile = recorded(queryprof, script(WORK + f"work(100)\n{ending}\n"))
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(profile)[SELECT] == 100


@pytest.mark.slow
def test_interpreter_exit_with_running_threads(queryprof: Run, script: Script) -> None:
    """Daemon threads run queries while the interpreter ends: no crash, no hang."""
    path = script(
        "import sqlite3, threading, time\n"
        # A connection a thread: dropped ones would be closed one by one by whichever thread happens
        # to collect garbage, while the others go on making more; bare CPython chokes on that too.
        "def forever():\n"
        "    connection = sqlite3.connect(':memory:')\n"
        "    while True: connection.execute('SELECT ?', (1,)).fetchone()\n"
        "for _ in range(8): threading.Thread(target=forever, daemon=True).start()\n"
        "time.sleep(0.3)\nprint('end')\n"
    )
    for _ in range(3):
        result, profile = recorded(queryprof, path)
        assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")
        assert by_operation(profile)[SELECT] > 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.repeats
def test_multiprocessing(queryprof: Run, script: Script, method: str) -> None:
    """Each child's executions are in the merged trace once."""
    path = script(
        WORK + "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    work(10)\n"
        "    children = [context.Process(target=work, args=(100,)) for _ in range(3)]\n"
        "    for child in children: child.start()\n"
        "    for child in children: child.join()\n"
    )
    result, profile = recorded(queryprof, path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(profile)[SELECT] == 310
    assert all(process.clean_end for process in profile.processes)
    assert len(profile.processes) == 4, "helpers that ask nothing leave no trace"


def test_fork_inside_a_query_and_while_threads_flush(queryprof: Run, script: Script) -> None:
    """A child forked from inside a SQL function records only its own calls.

    No other thread is inside of SQLite then: the child would never get SQLite's memory mutex, even
    without recording (4 of 150 runs).
    """
    path = script(
        WORK + "import os, threading, warnings\n"
        "warnings.simplefilter('ignore')  # the program's own threads, at a fork\n"
        "outside = threading.Lock()\n"
        "def works(times):\n"
        "    with outside: connection = sqlite3.connect(':memory:')\n"
        "    for i in range(times):\n"
        "        with outside: connection.execute('SELECT ?', (i,)).fetchone()\n"
        "    with outside: connection.close()\n"
        "background = [threading.Thread(target=works, args=(20000,)) for _ in range(2)]\n"
        "for thread in background: thread.start()\n"
        "def forks():\n"
        "    with outside: pid = os.fork()\n"
        "    if pid == 0:\n        work(7)\n        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n    return 1\n"
        "connection = sqlite3.connect(':memory:')\n"
        "connection.create_function('forks', 0, forks)\n"
        "for _ in range(5): connection.execute('SELECT forks()').fetchall()\n"
        "for thread in background: thread.join()\n"
    )
    result, profile = recorded(queryprof, path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(profile)[SELECT] == 40_000 + 5 * 7
    assert by_operation(profile)["SELECT forks()", "execute"] == 5
    assert len(profile.processes) == 6


def test_children_of_a_shell(queryprof: Run, script: Script, tmp_path: Path) -> None:
    """The command is not Python, but the Pythons below it are recorded."""
    script(WORK + "work(5)\n", "a.py")
    shell = tmp_path / "all.sh"
    shell.write_text(f"{sys.executable} a.py\n{sys.executable} a.py | cat\nexit 4\n")
    result = queryprof("run", "--no-report", "-o", "x.qprof", "sh", shell)
    assert result.returncode == 4
    assert by_operation(read_profile("x.qprof"))[SELECT] == 10


@pytest.mark.slow
def test_pytest_xdist(queryprof: Run, script: Script) -> None:
    """The workers of a test run are in the trace, with each test's queries once."""
    script(
        "import sqlite3, pytest\n"
        "@pytest.mark.parametrize('number', range(12))\n"
        "def test_query(number):\n"
        "    connection = sqlite3.connect(':memory:')\n"
        "    assert connection.execute('SELECT ?', (number,)).fetchone() == (number,)\n"
        "    connection.close()\n",
        "test_queries.py",
    )
    arguments = ("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_queries.py")
    result = queryprof("run", "--no-report", "-o", "x.qprof", *arguments)
    assert "12 passed" in result.stdout, result.stdout + result.stderr
    profile = read_profile("x.qprof")
    asked = [a for a in profile.aggregates if a.operation == "execute"]
    assert sum(a.count for a in asked) == 12
    assert {a.path[0].function for a in asked} == {"test_query"}
    assert len({a.thread.process_id for a in asked}) == 2


@pytest.mark.once
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGSEGV"])
@pytest.mark.repeats
def test_a_killed_process_loses_nothing(script: Script, number: str) -> None:
    """Only the call in progress is missing."""
    path = script(
        WORK + "import queryprof\nqueryprof.install('x.qprof')\n"
        "for turn in range(10**9):\n    work(10)\n    print(turn, flush=True)\n"
    )
    with open("turns", "w") as output:
        child = subprocess.Popen([sys.executable, path], stdout=output)
        while not Path("turns").stat().st_size:
            assert child.poll() is None
            time.sleep(0.01)
        begun_ns = time.time_ns()
        time.sleep(1.3)
        child.send_signal(getattr(signal, number))
        child.wait()
        elapsed_ns = time.time_ns() - begun_ns
    turns = Path("turns").read_text().count("\n")
    profile = read_profile("x.qprof")
    assert turns > 20
    assert 10 * turns <= by_operation(profile)[SELECT] <= 10 * (turns + 1)
    (process,) = profile.processes
    assert not process.clean_end
    assert process.start_unix_ns < begun_ns
    assert 1e9 < process.end_unix_ns - begun_ns < elapsed_ns
    assert Path("x.qprof").exists()
    assert not regions_of_trace(os.path.abspath("x.qprof"))


def test_a_running_process_is_read(script: Script) -> None:
    """Its trace does not exist yet, and the process is not disturbed."""
    path = script(
        WORK + "import queryprof\nqueryprof.install('x.qprof')\n"
        "work(10)\nprint('10', flush=True)\ninput()\nwork(5)\nprint('done')\n"
    )
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdin
        assert child.stdout.readline() == "10\n"
        running = read_profile("x.qprof")
        assert by_operation(running)[SELECT] == 10
        assert not running.processes[0].clean_end
        assert child.communicate("\n") == ("done\n", None)
    profile = read_profile("x.qprof")
    assert by_operation(profile)[SELECT] == 15
    assert profile.processes[0].clean_end


def test_unwritable_directory(script: Script, tmp_path: Path) -> None:
    """The program ends as usual. One line on stderr says that there is no trace."""
    path = script(WORK + "work(100)\nprint('done')\nraise SystemExit(5)\n")
    result = run_program(path, QUERYPROF="/proc/nowhere/x.qprof", PYTHONPATH=startup())
    assert (result.returncode, result.stdout) == (5, "done\n")
    assert len(result.stderr.splitlines()) == 1
    assert "queryprof" in result.stderr
    assert "/proc/nowhere/x.qprof" in result.stderr


def startup() -> str:
    import queryprof.startup

    return next(iter(queryprof.startup.__path__))


def limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


@pytest.mark.once
@pytest.mark.slow
def test_full_disk(script: Script) -> None:
    """One line says that the trace cannot be written, and the program ends as usual."""
    path = script(
        WORK + "import time, queryprof\nqueryprof.install('x.qprof')\n"
        "for second in range(3):\n"
        "    for i in range(400):\n"
        "        sqlite3.connect(':memory:').execute(f'SELECT 1 AS a{second}_{i}')\n"
        "    time.sleep(1.1)\n"
        "print('done')\n"
    )
    result = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=limit_file_size,
    )
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert len(result.stderr.splitlines()) == 1
    assert "the trace is not written" in result.stderr
    assert result.stderr.endswith("the file size limit (ulimit -f) is too low for it\n")
    assert os.listdir() == ["program.py"]


def test_queryprof_variable_without_the_command(script: Script, tmp_path: Path) -> None:
    """With QUERYPROF=path, the first process has the path, and its children their own files."""
    path = script(
        WORK + "import os\nwork(10)\nif os.fork() == 0:\n    work(3)\n    os._exit(0)\nos.wait()\n"
    )
    result = run_program(path, QUERYPROF="out/x.qprof", PYTHONPATH=startup())
    assert "queryprof" in result.stderr  # the directory out does not exist yet
    (tmp_path / "out").mkdir()
    result = run_program(path, QUERYPROF="out/x.qprof", PYTHONPATH=startup())
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("out/x.qprof"))[SELECT] == 10
    asked = sorted(by_operation(p)[SELECT] for p in traces_in(tmp_path / "out"))
    assert asked == [3, 3, 10, 10]  # includes what could not be written at first
    assert (tmp_path / "out" / "x.qprof").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_the_command_is_never_recorded(queryprof: Run, script: Script, tmp_path: Path) -> None:
    """QUERYPROF may be set for a whole shell. `run`, the readers of the trace, and the process that
    plans statements for them are not recorded.
    """
    everywhere = {"QUERYPROF": "x.qprof", "PYTHONPATH": startup()}
    path = script(f"{WORK}{SCAN}work(7)\n")
    result = queryprof("run", "--no-report", path, env=everywhere)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(os.listdir()) == ["program.py", "program.qprof"]
    assert by_operation(read_profile("program.qprof"))[SELECT] == 7
    run_program(path, **everywhere)
    result = queryprof("report", "x.qprof", env=everywhere)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(os.listdir()) == ["program.py", "program.qprof", "x.qprof"]
    assert by_operation(read_profile("x.qprof"))[SELECT] == 7


def test_a_users_sitecustomize_still_runs(queryprof: Run, script: Script, tmp_path: Path) -> None:
    """The hook removes itself from sys.path, and runs the file that Python would have run."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.mine = 1\n")
    path = script(
        "import sys\nassert sys.mine == 1\nimport sitecustomize\n"
        "assert sitecustomize.__file__.endswith('site/sitecustomize.py')\n"
        "assert not [p for p in sys.path if p.endswith('startup')], sys.path\n"
        "print(sys.argv)\n"
    )
    result = queryprof(
        "run", "--no-report", path, "-x", "--top", "y", env={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert result.stdout == f"[{str(path)!r}, '-x', '--top', 'y']\n", result.stderr


@pytest.mark.once
@pytest.mark.slow
def test_profiles_own_connection_is_never_recorded(script: Script) -> None:
    """A program without queries has an empty trace, however often it was flushed."""
    path = script(
        "import queryprof, time, sqlite3\nqueryprof.install('x.qprof')\n"
        "sqlite3.connect(':memory:').close()\ntime.sleep(2.2)\n"
    )
    assert run_program(path).stderr == ""
    profile = read_profile("x.qprof")
    assert set(by_operation(profile)) == {("(connect)", "connect"), ("(close)", "close")}


def test_traces_are_plain_sqlite(script: Script) -> None:
    """Any SQLite client can read a trace."""
    run_program(script(WORK + "import queryprof\nqueryprof.install('x.qprof')\nwork(9)\n"))
    connection = sqlite3.connect("x.qprof")
    rows = connection.execute(
        "SELECT text, operation, count FROM aggregate JOIN statement ON statement.id = statement_id"
        " WHERE operation = 'execute'"
    ).fetchall()
    connection.close()
    assert rows == [("SELECT ?", "execute", 9)]


def test_the_pth_file_starts_recording(script: Script) -> None:
    """In an installation from a wheel, QUERYPROF needs no command, even for an isolated Python."""
    if not (Path(sysconfig.get_path("purelib")) / "queryprof.pth").exists():
        pytest.skip("an editable installation has no .pth file")
    path = script(WORK + "work(4)\n")
    result = run_program(path, QUERYPROF="x.qprof")
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("x.qprof"))[SELECT] == 4
    code = "import sys; sys.exit(any(m.startswith('queryprof') for m in sys.modules))"
    for off in ({}, {"QUERYPROF": ""}):
        environment = {**os.environ, **off}
        assert (
            subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode
            == 0
        )
    isolated = subprocess.run(
        [sys.executable, "-I", path], env={**os.environ, "QUERYPROF": "i.qprof"}, check=False
    )
    assert isolated.returncode == 0
    assert by_operation(read_profile("i.qprof"))[SELECT] == 4
