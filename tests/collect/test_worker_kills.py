"""Workers that are killed around their copies on disk: each execution is in exactly one trace."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

ROUNDS, WORKERS = 50, 4
LONGEST_S = 2.2
"""The longest life of a worker, which updates its copy once a second."""

SERVER = """
import mmap, os, random, signal, sqlite3, sys, time
import queryprof.recorder.session
queryprof.recorder.session.CHECKPOINT_INTERVAL_S = 0.0  # with each look
import queryprof
queryprof.install(sys.argv[1])
chance = random.Random(int(sys.argv[2]))

def work():
    with open(f"log-{os.getpid()}", "w+b") as file:
        file.write(bytes(16))
        file.flush()
        log = mmap.mmap(file.fileno(), 16)
    connection = sqlite3.connect(":memory:")
    number = 0
    while True:
        number += 1
        log[:8] = number.to_bytes(8, "little")  # begun
        connection.execute("SELECT 42").fetchone()
        log[8:] = number.to_bytes(8, "little")  # ended
        if number % 64 == 0:
            time.sleep(0.001)

workers = []
for _ in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        work()
    workers.append((time.monotonic() + chance.random() * float(sys.argv[4]), child))
for end_s, child in sorted(workers):
    time.sleep(max(0, end_s - time.monotonic()))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
if chance.random() < 0.5:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def executed_by_process(directory: Path) -> Counter[int]:
    executed: Counter[int] = Counter()
    for path in directory.glob("x*.qprof"):
        profile = read_profile(str(path))
        pids = {process.id: process.pid for process in profile.processes}
        for a in profile.aggregates:
            if a.statement == "SELECT ?" and a.operation == "execute":
                executed[pids[a.thread.process_id]] += a.count
    return executed


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["shared", "copies"])
def test_two_hundred_kills(queryprof: Run, tmp_path: Path, memory: str) -> None:
    """The copy on disk may be newer or older than the memory, and the server may end itself.
    Without shared memory, executions since the last copy may be missing, but none counts twice.
    """
    chance = random.Random(11)
    for number in range(ROUNDS if memory == "shared" else ROUNDS // 5):
        directory = tmp_path / str(number)
        directory.mkdir()
        rules = (
            ""
            if memory == "shared"
            else "import queryprof.region.region_files as r; r.memory_directories = list\n"
        )
        program = directory / "server.py"
        program.write_text(rules + SERVER)
        arguments = ["x.qprof", str(chance.randrange(1 << 30)), str(WORKERS), str(LONGEST_S)]
        subprocess.run(
            [sys.executable, program, *arguments], cwd=directory, check=False, timeout=60
        )
        for _ in range(2):  # nothing is recovered again
            queryprof("report", str(directory / "x.qprof"))
            executed = executed_by_process(directory)
        for log in directory.glob("log-*"):
            begun, ended = struct.unpack("<QQ", log.read_bytes())
            count = executed.pop(int(log.name.partition("-")[2]), 0)
            assert count <= begun, (number, log.name, count, begun, ended)
            assert memory == "copies" or ended <= count, (number, log.name, count, begun, ended)
        assert not executed
        for unfinished in (*directory.glob("*.new"), *directory.glob("*.live")):
            os.utime(unfinished, (0, 0))  # a worker was killed during its first copy
        queryprof("report", str(directory / "x.qprof"))
        assert not [name for name in os.listdir(directory) if name.endswith((".new", ".live"))]
