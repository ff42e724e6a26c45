"""Imported database modules that are not measured: the report lists them."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.hooks.drivers.unmeasured import SUBINTERPRETERS

pytestmark = pytest.mark.once

NO_CALLS = "No database calls were recorded."


def cautions(queryprof: Run, program: str, *arguments: str) -> list[str]:
    Path("program.py").write_text(program)
    result = queryprof("run", "--no-report", "-o", "x.qprof", "program.py", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    lines = queryprof("report", "x.qprof").stdout.splitlines()
    return [line for line in lines if NO_CALLS in line or "not measured" in line]


def test_they_are_listed(queryprof: Run) -> None:
    """They follow PEP 249, or are known. Their submodules are not listed."""
    Path("asyncmy").mkdir()
    Path("asyncmy/__init__.py").write_text("")
    Path("asyncmy/cursors.py").write_text("")
    Path("db2.py").write_text("apilevel, paramstyle = '2.0', 'qmark'\ndef connect(): ...\n")
    none, named = cautions(queryprof, "import asyncmy.cursors, db2, json\n")
    assert none.endswith(NO_CALLS)
    assert "imported but not measured: asyncmy, db2 (" in named
    (process,) = read_profile("x.qprof").processes
    assert process.unmeasured == ("asyncmy", "db2")


@pytest.mark.slow
def test_what_is_measured_is_not(queryprof: Run) -> None:
    """These are known drivers, drivers that a program names, and modules with the names
    of either.
    """
    pytest.importorskip("pymysql")
    Path("ours.py").write_text("from sqlite3 import *\nfrom sqlite3 import connect\n")
    program = (
        "import queryprof, pymysql, sqlite3, ours, aiosqlite, psycopg, duckdb, apsw\n"
        "queryprof.instrument('pymysql')\n"
    )
    assert cautions(queryprof, program) == [f"! {NO_CALLS}"]
    (process,) = read_profile("x.qprof").processes
    assert process.unmeasured == ()


def test_one_that_cannot_be_attached_to(queryprof: Run) -> None:
    Path("apsw.py").write_text("")
    Path("program.py").write_text("import apsw\n")
    result = queryprof("run", "-o", "x.qprof", "program.py")
    assert result.stderr.count("apsw is not measured") == 1
    (process,) = read_profile("x.qprof").processes
    assert process.unmeasured == ("apsw",)


def test_a_module_that_loads_when_it_is_used_stays_unloaded(queryprof: Run) -> None:
    program = (
        "import importlib.util, sys\n"
        "spec = importlib.util.find_spec('loud')\n"
        "spec.loader = importlib.util.LazyLoader(spec.loader)\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['loud'] = module\n"
        "spec.loader.exec_module(module)\n"
        "sys.modules[7] = sys.modules['none'] = None\n"
    )
    Path("loud.py").write_text("raise SystemExit('loaded')\n")
    assert cautions(queryprof, program) == [f"! {NO_CALLS}"]


def test_modules_that_raise_are_left_alone(queryprof: Run) -> None:
    """Modules are inspected without reading attributes, since that may run the program's code."""
    program = (
        "import sys, types\nclass Loud(types.ModuleType):\n    __dict__ = property(lambda self: 1 /"
        " 0)\n    def __getattr__(self, name): raise SystemExit(name)\nclass Connect:\n    def"
        " __getattribute__(self, name): raise SystemExit(name)\nclass Name(str):\n    def"
        " __lt__(self, other): raise SystemExit(other)\nodd ="
        " types.ModuleType('odd')\nodd.apilevel, odd.paramstyle, odd.connect = '2.0', 'qmark',"
        " Connect()\nsys.modules.update(odd=odd, loud=Loud('loud'),"
        " new=types.ModuleType.__new__(types.ModuleType))\nsys.modules[Name('name')] = odd\n"
    )
    none, named = cautions(queryprof, program)
    assert none == f"! {NO_CALLS}"
    assert "not measured: odd (" in named


def test_of_a_killed_process_they_are_unknown(queryprof: Run) -> None:
    Path("program.py").write_text(
        "import os, queryprof, sqlite3\nqueryprof.install('x.qprof')\n"
        f"sqlite3.connect(':memory:')\nos.kill(os.getpid(), {signal.SIGKILL:d})\n"
    )
    subprocess.run([sys.executable, "program.py"], check=False)
    assert queryprof("report", "x.qprof").returncode == 0
    (process,) = read_profile("x.qprof").processes
    assert process.unmeasured is None


def test_subinterpreters_are_reported(queryprof: Run) -> None:
    """Their calls are not measured."""
    name = next(one for one in sorted(SUBINTERPRETERS) if find_spec(one))
    program = f"import {name} as interpreters\ninterpreters.create()\n"
    if name.startswith("concurrent.futures"):
        program = "import concurrent.futures\nconcurrent.futures.InterpreterPoolExecutor\n"
    assert f"imported but not measured: {name}" in cautions(queryprof, program)[1]


def test_executors_make_none(queryprof: Run) -> None:
    program = "import asyncio, concurrent.futures\nconcurrent.futures.ThreadPoolExecutor\n"
    assert cautions(queryprof, program) == [f"! {NO_CALLS}"]


PAST = """
import sys
finders = [one for one in sys.meta_path if type(one).__module__.split(".")[0] != "queryprof"]
sys.meta_path = finders
import sqlite3
sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
"""


def test_imports_past_its_finder_are_reported(queryprof: Run) -> None:
    assert "imported but not measured: sqlite3 (" in cautions(queryprof, PAST)[1]


def test_a_child_that_imports_past_its_finder_says_so(queryprof: Run) -> None:
    Path("parent.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, 'program.py'], check=True)\n"
    )
    Path("program.py").write_text(PAST)
    result = queryprof("run", "--no-report", "-o", "x.qprof", "parent.py")
    assert (
        result.stderr
        == "queryprof: this process is not recorded: queryprof did not notice the import of"
        " _sqlite3\n"
    )


def test_what_a_program_puts_in_the_place_of_a_driver_is_no_import(queryprof: Run) -> None:
    """Tests do this. Nothing of it could be measured."""
    Path("parent.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, 'program.py'], check=True)\n"
    )
    Path("program.py").write_text(
        "import sys\n"
        "sys.modules['psycopg2'] = object()\n"  # unittest.mock imports asyncio, which is measured
        "sys.modules['apsw'] = type(sys)('apsw')\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", "parent.py")
    assert (result.returncode, result.stderr) == (0, "")
