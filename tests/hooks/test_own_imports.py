"""Imports by queryprof in the program's process change nothing there.

No file of the program with a name of the standard library is run, and queryprof waits for no import
by another thread.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof

SHADOWS = (
    "ast",
    "dataclasses",
    "fnmatch",
    "hashlib",
    "json",
    "shutil",
    "signal",
    "string",
    "struct",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "typing",
    "tomllib",
    "uuid",
)
"""Modules of the standard library that sqlite3 does not import."""

PROGRAM = """
import sqlite3, sys
WAYS
print("hello")
import json, signal
print(json.VALUE, signal.VALUE)
"""
QUERY = "sqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"
WAYS = {
    "bare": QUERY,
    "installed": f"import queryprof\nqueryprof.install('x.qprof')\n{QUERY}",
    "ended": f"import queryprof\nqueryprof.install('x.qprof')\n{QUERY}queryprof.uninstall()\n",
    "block": (
        f"import queryprof\nwith queryprof.profile('x.qprof') as p:\n    {QUERY}"
        "p.report(file=open('report.txt', 'w'))\n"
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.repeats
def test_files_with_names_of_the_standard_library_are_the_programs(
    tmp_path: Path, way: str
) -> None:
    """They run only when the program imports them."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"print('own {name}', flush=True)\nVALUE = 7\n")
    (tmp_path / "app.py").write_text(PROGRAM.replace("WAYS", WAYS[way]))
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "hello\nown json\nown signal\n7 7\n"
    assert (tmp_path / "x.qprof").exists() == (way != "bare")


AT_START = (
    "array",
    "collections",
    "contextlib",
    "datetime",
    "enum",
    "functools",
    "ipaddress",
    "keyword",
    "operator",
    "re",
    "reprlib",
    "selectors",
    "socket",
    "sqlite3",
    "struct",
    "types",
    "urllib",
)
"""Modules that reading a trace imports from the existing path, before the program's directory is in
sys.path.
"""


@pytest.mark.parametrize("arguments", [["app.py"], ["-m", "app"], ["-c", "import app"]])
@pytest.mark.repeats
def test_so_are_those_that_a_start_with_the_process_needs(
    tmp_path: Path, arguments: list[str]
) -> None:
    for name in AT_START:
        (tmp_path / f"{name}.py").write_text("VALUE = 7\n")
    program = f"print([getattr(__import__(name), 'VALUE', 0) for name in {AT_START!r}])"
    (tmp_path / "app.py").write_text(program)
    outputs = []
    with queryprof.profile(str(tmp_path / "before.qprof")):
        sqlite3.connect(":memory:").close()
    for value in ("", "t.qprof"):
        shutil.copy(tmp_path / "before.qprof", tmp_path / "t.qprof")
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "QUERYPROF": value, "PYTHONPATH": ""},
        )
        outputs.append((done.returncode, done.stdout, done.stderr))
    assert outputs[1] == outputs[0]


HALF = """
import sys, threading
import queryprof
queryprof.install  # loads it: only the start is beside the import
reached, go, failed = threading.Event(), threading.Event(), []

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            reached.set()
            assert go.wait(60)

def import_it():
    try:
        import asyncio
    except BaseException as error:
        failed.append(repr(error))

sys.meta_path.insert(0, Stop())
thread = threading.Thread(target=import_it)
thread.start()
assert reached.wait(60)
recording = queryprof.profile().__enter__()
go.set()
thread.join()
sys.meta_path.pop(0)
assert not failed, failed
import asyncio
assert type(asyncio.__spec__) is type(sys.__spec__), type(asyncio.__spec__)

async def main():
    await asyncio.sleep(0)

asyncio.run(main())
recording.__exit__(None, None, None)
print([loop.kind for loop in recording.profile.loops])
queryprof.uninstall()
"""


@pytest.mark.parametrize("module", ["asyncio.constants", "asyncio.sslproto", "asyncio.runners"])
@pytest.mark.repeats
def test_a_start_while_another_thread_imports_what_is_attached_to(
    tmp_path: Path, module: str
) -> None:
    """asyncio.base_events is missing, half imported, or imported for a package that is missing."""
    done = subprocess.run(
        [sys.executable, "-c", HALF, module],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("['asyncio']\n", "")


LOADERS = """
import copy, pickle, weakref
import importlib.abc, importlib.machinery, importlib.util, sys
import queryprof
queryprof.install("/dev/null")
for name in ("_sqlite3", "sqlite3"):
    spec, own = importlib.util.find_spec(name), importlib.machinery.PathFinder.find_spec(name)
    assert spec == own and spec.loader == own.loader and own.loader == spec.loader
    assert hash(spec.loader) == hash(own.loader)
    assert isinstance(spec.loader, type(own.loader)) and spec.loader.__class__ is type(own.loader)
    assert isinstance(spec.loader, importlib.abc.Loader)
    assert repr(spec.loader).partition(" at ")[0] == repr(own.loader).partition(" at ")[0]
    assert vars(spec.loader) == vars(own.loader)
    for copied in (copy.copy(spec.loader), copy.deepcopy(spec.loader), pickle.loads(pickle.dumps(spec.loader))):
        assert type(copied) is type(own.loader) and copied == own.loader
    assert weakref.ref(spec.loader)() is spec.loader
    spec.loader.mine = 1
    assert vars(spec.loader)["mine"] == 1
    del spec.loader.mine
    other = type(spec.loader)("other", own.loader.path)
    assert other.name == "other" and isinstance(other, type(own.loader))
json_spec = importlib.util.find_spec("json.tool")
assert type(json_spec.loader) is importlib.machinery.SourceFileLoader
import sqlite3
assert type(sqlite3.__loader__) is type(sqlite3.__spec__.loader) is type(own.loader)
db = sqlite3.connect(":memory:")
assert type(db) is sqlite3.Connection and db.execute("SELECT 1").fetchall() == [(1,)]


"""

SHARED = """
import importlib.machinery, importlib.util, sys
import queryprof

class Shared:  # a loader of several modules
    def create_module(self, spec): return None
    def exec_module(self, module):
        found = importlib.machinery.PathFinder.find_spec(module.__name__)
        found.loader.exec_module(module)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "aiosqlite":
            found = importlib.machinery.PathFinder.find_spec(name, path)
            spec = importlib.util.spec_from_loader(name, loader, is_package=True)
            spec.submodule_search_locations = found.submodule_search_locations
            return spec

loader = Shared()
sys.meta_path.insert(0, Finder())
with queryprof.profile() as recording:
    spec = importlib.util.find_spec("aiosqlite")
    import copy
    assert copy.copy(spec.loader) is not None and isinstance(spec.loader, Shared)
    spec.loader.mine = 1
    assert loader.mine == 1
    del spec.loader.mine
    import aiosqlite
    assert aiosqlite.__spec__.loader is loader
"""


def test_a_loader_of_the_program_s_own_is_left_as_it_is() -> None:
    pytest.importorskip("aiosqlite")
    done = subprocess.run(
        [sys.executable, "-c", SHARED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_loader_of_what_is_attached_to_passes_for_its_own() -> None:
    """A program may inspect it before the import."""
    done = subprocess.run(
        [sys.executable, "-c", LOADERS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
