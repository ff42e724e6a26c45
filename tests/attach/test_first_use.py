"""A process below a recorded command starts to record when it imports what a recording needs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof.session
from conftest import Run
from queryprof.hooks import autoload
from queryprof.hooks.libraries import HOMES
from queryprof.model import Profile
from queryprof.trace.reader import read_profile

Script = Callable[..., Path]

STARTS = """
import subprocess, sys
for program in sys.argv[1:]:
    subprocess.run([sys.executable, "-c", program], check=True)
"""


def below(queryprof: Run, script: Script, *programs: str) -> tuple[str, Profile]:
    """What programs print that a recorded program starts, and the recording."""
    result = queryprof("run", "--no-report", "-o", "x.qprof", script(STARTS), *programs)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout, read_profile("x.qprof")


def test_a_process_without_a_database_loads_a_finder_alone(queryprof: Run, script: Script) -> None:
    printed, profile = below(
        queryprof, script,
        "import sys, json; print(*sorted(m for m in sys.modules if m.startswith('queryprof')))",
    )  # fmt: skip
    assert printed.split() == [
        "queryprof", "queryprof.hooks", "queryprof.hooks.autoload", "queryprof.hooks.libraries"
    ]  # fmt: skip
    assert len(profile.processes) == 1


@pytest.mark.parametrize(
    "imports",
    ["import sqlite3", "import _sqlite3", "from sqlite3 import dbapi2", "import asyncio, sqlite3",
     "import queryprof, sqlite3", "import queryprof; queryprof.is_installed(); import sqlite3",
     "import concurrent.futures.thread, sqlite3", "import multiprocessing.util, sqlite3"],
)  # fmt: skip
def test_whatever_is_imported_first(queryprof: Run, script: Script, imports: str) -> None:
    """All is counted, and the process began when it began."""
    before_ns = time.time_ns()
    _, profile = below(
        queryprof, script,
        f"import time; imported_ns = time.time_ns(); time.sleep(0.01)\n{imports}\n"
        "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 42').fetchone()\n"
        "assert type(sqlite3.connect) is type(len), sqlite3.connect",
    )  # fmt: skip
    (_, child) = profile.processes
    assert sum(a.count for a in profile.aggregates if a.operation == "execute") == 1
    assert before_ns < child.start_unix_ns < child.end_unix_ns - 10_000_000
    assert child.clean_end


def test_each_public_function_starts_it(queryprof: Run, script: Script) -> None:
    names = ("install", "span", "loop_lag", "WsgiMiddleware", "AsgiMiddleware")
    printed, _ = below(
        queryprof, script,
        *(f"import queryprof; queryprof.{name}; print(queryprof.is_installed())" for name in names),
    )  # fmt: skip
    assert printed.split() == ["True"] * len(names)


def test_threads_that_import_at_once(queryprof: Run, script: Script) -> None:
    """One of them starts it, the others' libraries are attached to."""
    printed, profile = below(
        queryprof, script,
        """
import threading
start = threading.Barrier(3)
def work(name):
    start.wait()
    __import__(name)
threads = [threading.Thread(target=work, args=(n,)) for n in ("sqlite3", "asyncio", "concurrent.futures.thread")]
for one in threads: one.start()
for one in threads: one.join()
import sqlite3, asyncio, queryprof
sqlite3.connect(":memory:").execute("SELECT 42").fetchone()
async def main():
    await asyncio.sleep(0)
asyncio.run(main())
from queryprof.session import session
print(session.libraries.failures)
""",
    )  # fmt: skip
    assert printed == "{}\n"
    assert sum(a.count for a in profile.aggregates if a.operation == "execute") == 1
    assert [loop.kind for loop in profile.loops] == ["asyncio"]


def test_a_subinterpreter_imports_as_it_would_without(queryprof: Run, script: Script) -> None:
    """It is not recorded, and no import of it fails."""
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    printed, _ = below(
        queryprof, script,
        f"import {module} as interpreters\n"
        "one = interpreters.create()\n"
        "text = 'try:\\n import json, sqlite3\\nexcept ImportError as e:\\n assert \"queryprof\" not in str(e), e'\n"
        "print(interpreters.run_string(one, text))\n",
    )  # fmt: skip
    assert printed == "None\n"


def test_a_fork_before_the_first_use(queryprof: Run, script: Script) -> None:
    """Parent and child record themselves, each its own."""
    _, profile = below(
        queryprof, script,
        """
import os
child = os.fork()
import sqlite3
for number in range(2 if child else 3):
    sqlite3.connect(":memory:").execute("SELECT 42").fetchone()
if child:
    os.waitpid(child, 0)
""",
    )  # fmt: skip
    assert len(profile.processes) == 3
    executed = {
        a.thread.process_id: a.count for a in profile.aggregates if a.operation == "execute"
    }
    assert sorted(executed.values()) == [2, 3]


def test_starting_imports_none_of_the_modules_that_start_it() -> None:
    """Else they would be loaded twice."""
    program = "import sys, queryprof.session; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    needed = {*autoload.OWN_MODULES, *HOMES}
    assert needed.isdisjoint(modules)
    assert all(importlib.util.find_spec(name) for name in autoload.OWN_MODULES)


def test_whoever_imports_the_session_at_once_starts_it() -> None:
    """Else a recording would begin without the place where the command looks for it."""
    root = Path(queryprof.session.__file__).parent
    hooks = Path(autoload.__file__).parent
    found = {
        f"{name}.{'.'.join(path.relative_to(folder).with_suffix('').parts)}"
        for name, folder in (("queryprof", root), ("queryprof.hooks", hooks))
        for path in folder.rglob("*.py")
        if "\nfrom queryprof.session import" in path.read_text()
    }
    assert found - {"queryprof.cli.doctor"} <= set(autoload.OWN_MODULES)
