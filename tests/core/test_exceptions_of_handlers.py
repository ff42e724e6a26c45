"""What a program's signal handler raises reaches the program, also if it runs in queryprof's code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sqlite3, sys, threading
from contextlib import closing
import queryprof
raised = arrived = 0
class Late(Exception):
    pass
def handler(number, frame):
    global raised
    raised += 1
    raise Late(str(raised))
signal.signal(signal.SIGALRM, handler)
def alarm(after_s):
    signal.setitimer(signal.ITIMER_REAL, after_s)
def after(number, work, step_s):
    "Run the work again and again, with the alarm at a later moment each time."
    global arrived
    for turn in range(number):
        try:
            try:
                alarm(step_s * (turn + 1))
                work(turn)
            finally:
                alarm(0)
        except Late:
            arrived += 1
        except sqlite3.OperationalError:
            pass
"""

WORKS = {
    "values": """
con = sqlite3.connect(":memory:")
def work(turn):
    for value in range(20):
        con.execute("SELECT ?, ?, ?", (turn, value, "text")).fetchall()
after(200, work, 0.00001)
""",
    "locks": """
holder = sqlite3.connect("held.db", isolation_level=None)
holder.execute("CREATE TABLE t (a)")
holder.execute("BEGIN IMMEDIATE")
con = sqlite3.connect("held.db", isolation_level=None, timeout=0)
after(100, lambda turn: con.execute("INSERT INTO t VALUES (1)"), 0.0003)
""",
    "recordings": """
def work(turn):
    queryprof.install("second.qprof")
    # CPython 3.13 drops what a handler raises in the warning about an open connection.
    with closing(sqlite3.connect(":memory:")) as con:
        con.execute("SELECT 1")
    queryprof.uninstall()
work(0)  # imports that an alarm interrupts lose its exception, as in any program
after(60, work, 0.001)
""",
    "forks": """
sqlite3.connect(":memory:").execute("SELECT 1")
def work(turn):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
after(150, work, 0.0001)
thread = threading.Thread(target=work, args=(0,))
thread.start()
thread.join()
""",
}


OF_CPYTHON = "<function _after_fork at"
"""The function of `threading` that CPython calls in a new child. A signal that is pending during the
fork may run its handler there, and CPython drops what the handler raises.
"""

IMPORTING = {"recordings"}
"""Works that import: CPython drops what a handler raises in a callback of an import lock."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in IMPORTING)) for name in WORKS],
)
def test_each_exception_arrives_once(tmp_path: Path, name: str) -> None:
    code = HEAD + WORKS[name] + "\nprint(raised == arrived, raised > 0)"
    environment = {
        **os.environ,
        "QUERYPROF_PARAMETERS": "1",
        "QUERYPROF_EXPLAIN_LOCKS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    start = "" if name == "recordings" else "import queryprof; queryprof.install('first.qprof')\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr
    ignored = [line for line in done.stderr.splitlines() if line.startswith("Exception ignored")]
    assert [line for line in ignored if OF_CPYTHON not in line] == []
