"""`queryprof attach`: running programs are recorded for a while, and are restored afterwards."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from recorder.running_programs import BUSY, OBEYS, STANDBY, Command, attached, running

from conftest import QUERYPROF, Run, by_operation
from queryprof.collect.reader import read_profile
from queryprof.recorder.standby import SIGNAL

SELECT = ("SELECT ?", "execute")
METHODS = "[sqlite3.Cursor.execute, sqlite3.Connection.execute, type(sqlite3.Cursor.execute)]"


def until_off(program) -> None:
    while program("is_on()") == "True":
        pass


def test_what_it_does_meanwhile_is_counted(queryprof: Run) -> None:
    with running(**STANDBY) as program:
        program("work(5)")
        before = program(METHODS), program("sorted(os.environ.items())")
        with attached(program, "--no-report"):
            program("work(40)")
            assert program("scan()") == "9"
        assert (program(METHODS), program("sorted(os.environ.items())")) == before
        assert program("is_on()") == "False"
        program("work(6)")
        assert program.end() == ""
    profile = read_profile("x.qprof")
    counts = by_operation(profile)
    assert counts[SELECT] == 40
    assert counts["SELECT a FROM t WHERE a + ? > ?", "execute"] == 1
    (scan,) = (a for a in profile.aggregates if a.statement.endswith("> ?") and a.vm_steps)
    assert scan.path[0].function == "scan"  # on a connection opened before attaching
    assert [one.clean_end for one in profile.processes] == [True]
    assert not list(Path().glob(".*")) + list(Path().glob("x.qprof.*"))
    shown = queryprof("report", "x.qprof").stdout
    assert "41 executions" in " ".join(shown.split())


def test_it_reports_what_it_has_recorded() -> None:
    with running(**STANDBY) as program, attached(program) as command:
        program("work(3)")
        message = command.end()
    assert "3 executions" in " ".join(message.split())
    assert "trace: x.qprof" in message


@pytest.mark.slow
def test_again_and_again() -> None:
    with running(**STANDBY) as program:
        for number in range(1, 4):
            with attached(program, "--no-report", output=f"{number}.qprof"):
                program(f"work({number})")
            assert by_operation(read_profile(f"{number}.qprof"))[SELECT] == number
        assert program.end() == ""


def test_in_standby_nothing_is_in_place_but_the_signal() -> None:
    with running(**STANDBY) as program:
        names = program("sorted(m for m in sys.modules if m.startswith('queryprof'))")
        assert "queryprof.recorder.session" not in names
        assert "_core'" not in names
        assert program("__import__('threading').active_count()") == "1"
        caught = program("open('/proc/self/status').read().split('SigCgt:')[1].split()[0]")
    with running() as bare:
        plain = bare("open('/proc/self/status').read().split('SigCgt:')[1].split()[0]")
    assert int(caught, 16) == int(plain, 16) | 1 << (SIGNAL - 1)


def test_several_are_one_trace() -> None:
    with running(**STANDBY) as one, running(**STANDBY) as other:
        command = Command(one.pid, other.pid, "-o", "x.qprof", "--no-report")
        one("work(3)")
        other("work(4)")
        command.end()
    profile = read_profile("x.qprof")
    assert {p.pid for p in profile.processes} == {one.pid, other.pid}
    assert by_operation(profile)[SELECT] == 7


def test_workers_that_are_not_recorded_are_listed() -> None:
    """They are child processes of the same executable. A child that runs something else is no
    worker.
    """
    text = OBEYS.replace(
        "print(os.getpid()",
        """
import subprocess
other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
worker, reads, writes = 0, *os.pipe()
def start_worker():
    global worker
    worker = os.fork()
    if not worker:
        os.close(writes)
        os.read(reads, 1)
        os._exit(0)
    return worker
def finish():
    os.close(writes), other.communicate()
    return os.waitpid(worker, 0)[1] if worker else 0
print(os.getpid()""",
        1,
    )
    with running(text, **STANDBY) as program:
        with attached(program, "--no-report") as command:
            assert "not recorded" not in command.end()
        worker = program("start_worker()")
        with attached(program, "--no-report", output="y.qprof") as command:
            message = command.end()
        expected = (
            f"not recorded: 1 worker process; to add: queryprof attach {program.pid} {worker}"
        )
        assert expected in message
        assert program("finish()") == "0"


def test_for_a_time() -> None:
    with running(**STANDBY) as program:
        command = Command(program.pid, "--for", "50ms", "-o", "x.qprof", "--no-report")
        assert "for 0.05 s" in command.message
        command.result()
        assert program("is_on()") == "False"
    assert read_profile("x.qprof").processes[0].wall_ns >= 50_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.repeats
def test_signals_end_it_with_its_trace(number: int) -> None:
    with running(**STANDBY) as program, attached(program, "--no-report") as command:
        program("work(2)")
        command.end(number)
        assert program("is_on()") == "False"
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2


def test_a_killed_command_ends_the_recording() -> None:
    with running(**STANDBY) as program:
        with attached(program) as command:
            program("work(2)")
            command.process.kill()
            command.process.communicate(timeout=60)
            until_off(program)
        with attached(program, "--no-report", output="y.qprof"):
            program("work(3)")
        assert program.end() == ""
    assert by_operation(read_profile("y.qprof"))[SELECT] == 3


@pytest.mark.parametrize("ends", ["sys.exit()", "os.kill(os.getpid(), 9)"])
@pytest.mark.repeats
def test_a_program_that_ends_meanwhile(ends: str) -> None:
    with running(**STANDBY) as program, attached(program, "--no-report") as command:
        program("work(4)")
        program(ends)
        command.result()
        program.process.communicate(timeout=60)
    assert by_operation(read_profile("x.qprof"))[SELECT] == 4


@pytest.mark.parametrize("options", [(), ("-W", "error::DeprecationWarning")])
@pytest.mark.repeats
def test_a_fork_meanwhile(options: tuple[str, ...]) -> None:
    """The child is not recorded, and Python finds no thread to warn about."""
    with running(OBEYS, *options, **STANDBY) as program:
        with attached(program, "--no-report"):
            for _ in range(3):
                program("work(2)")
                assert program("forks()") == "20"
            program("work(2)")
        assert program("forks()") == "20"
        assert program.end() == ""
    profile = read_profile("x.qprof")
    assert by_operation(profile)[SELECT] == 8
    assert len(profile.processes) == 1


def test_two_commands_at_once() -> None:
    with running(**STANDBY) as program:
        with attached(program, "--no-report"):
            program("work(1)")
            other = Command(program.pid, "-o", "y.qprof")
            assert other.message.endswith("another command is attached to it\n")
            other.result(2)
            program("work(1)")
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2
    assert not list(Path().glob("y.*"))


def test_a_program_that_is_recorded_already() -> None:
    install = "__import__('queryprof').install('own.qprof')"
    with running(**STANDBY) as program:
        program(install)
        other = Command(program.pid)
        assert "is recorded already: see `queryprof top`" in other.message
        other.result(2)
        assert program("is_on()") == "True"
        program("work(2)")
        assert program.end() == ""
    assert by_operation(read_profile("own.qprof"))[SELECT] == 2


@pytest.mark.slow
def test_a_program_that_records_itself_meanwhile() -> None:
    """Its own recording continues after the command's end, and its trace has everything before."""
    with running(**STANDBY) as program:
        with attached(program, "--no-report"):
            program("work(2)")
            program("__import__('queryprof').install('own.qprof')")
            program("work(3)")
        assert program("is_on()") == "True"
        program("work(4)")
        program.end()
    assert by_operation(read_profile("own.qprof"))[SELECT] == 9


@pytest.mark.slow
def test_an_event_loop_that_runs_already(queryprof: Run) -> None:
    program = """
import asyncio, os, sqlite3, sys
connection = sqlite3.connect(":memory:")
HEAVY = "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT ?) SELECT sum(a) FROM n"
def heavy(rows):
    return connection.execute(HEAVY, (rows,)).fetchone()[0] > 0
async def main():
    loop = asyncio.get_running_loop()
    print(os.getpid(), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(eval(line), flush=True)
asyncio.run(main())
"""
    with running(program, **STANDBY) as running_loop:
        with attached(running_loop, "--no-report"):
            assert running_loop("heavy(1_500_000)") == "True"
            running_loop("1")
        running_loop.end()
    (loop,) = read_profile("x.qprof").loops
    assert loop.stall_events


def test_top_attaches(queryprof: Run) -> None:
    with running(BUSY, **STANDBY) as program:
        result = queryprof(
            "top", "--attach", "--once", "--format", "json", "--every", "100ms", program.pid
        )
        assert (result.returncode, result.stderr) == (0, "")
        assert f'"pid": {program.pid}' in result.stdout
        assert program("is_on()") == "False"
        program("finish()")
        assert program.end() == ""
    assert queryprof("top", "--attach").returncode == 2


@pytest.mark.once
@pytest.mark.slow
def test_many_threads_and_attachments() -> None:
    """No call fails, and each is counted in at most one trace."""
    total = 0
    with running(BUSY, **STANDBY) as program:
        for _ in range(5):
            with attached(program, "--no-report"):
                first = int(program("sum(counts)"))
                while int(program("sum(counts)")) < first + 500:
                    time.sleep(0)
                within = int(program("sum(counts)")) - first
            counts = by_operation(read_profile("x.qprof"))
            found = counts["SELECT ?, ?", "execute"]
            assert found >= within >= 500
            total += found
        assert int(program("finish()")) >= total
        assert program.end() == ""


@pytest.mark.once
def test_the_commands_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "production.md").read_text()
    shown = [line for line in page.splitlines() if line.startswith("queryprof ") and "PID" in line]
    assert len(shown) == 2
    with running(BUSY, **STANDBY) as program:
        for line in shown:
            words = line.replace("--for 60s", "--for 50ms").replace("PID", str(program.pid)).split()
            done = subprocess.run([QUERYPROF, *words[1:]], capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
            assert program("is_on()") == "False"
        program("finish()")
        assert program.end() == ""


def test_all_of_several_or_none() -> None:
    with (
        running(**STANDBY) as one,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other,
    ):
        command = Command(one.pid, other.pid)
        assert f"process {other.pid} " in command.message
        command.result(2)
        assert one("is_on()") == "False"
        assert one.end() == ""
    assert not list(Path().glob("*.qprof*"))
