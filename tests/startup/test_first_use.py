"""A child process is recorded from its first import of a measured module."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import QUERYPROF, Run
from queryprof.collect.reader import read_profile
from queryprof.hooks import first_use
from queryprof.hooks.first_use import MEASURED, FirstUseFinder
from queryprof.hooks.libraries import HOOK_BY_MODULE
from queryprof.model import Profile

LOADED = (
    "import sys, json; print(json.dumps(sorted(name for name in sys.modules if"
    " name.startswith('queryprof'))))"
)

RUN = "db = sqlite3.connect(':memory:'); db.execute('SELECT 1 + ?', (1,)).fetchall()"

CHILDREN = {
    "plain": f"import sqlite3; {RUN}",
    "in a function": f"def f():\n  import sqlite3\n  {RUN}\nf()",
    "a thread": (
        f"import threading\ndef f():\n  import sqlite3\n  {RUN}\nt = threading.Thread(target=f);"
        " t.start(); t.join()"
    ),
    "a fork": (
        f"import os, sys\nif not os.fork():\n  import sqlite3\n  {RUN}\n  sys.exit()\nos.wait()"
    ),
    "after chdir": f"import os; os.chdir('/'); import sqlite3; {RUN}",
    "beside asyncio": f"import asyncio, sqlite3\nasync def f():\n  {RUN}\nasyncio.run(f())",
    "at the end": f"import atexit\n@atexit.register\ndef f():\n  {RUN}\nimport sqlite3",
    "imported at the end": f"import atexit\n@atexit.register\ndef f():\n  import sqlite3\n  {RUN}",
    "in a process of multiprocessing": (
        f"import multiprocessing\ndef f():\n  import sqlite3\n  {RUN}\nif __name__ == '__main__':\n"
        "  p = multiprocessing.get_context('spawn').Process(target=f); p.start(); p.join()"
    ),
    "by the C module": f"import _sqlite3 as sqlite3; {RUN}",
    "after a finder of its own": (
        "import sys\nclass Finder:\n  def find_spec(self, *a): return None\n"
        f"sys.meta_path.insert(0, Finder())\nimport sqlite3; {RUN}"
    ),
}

PARENT = (
    "import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"
)


Recorded = Callable[[str], tuple[str, Profile]]


@pytest.fixture
def recorded(tmp_path: Path, queryprof: Run) -> Recorded:
    """Run a text as the child of a recorded program, and read the trace."""
    (tmp_path / "parent.py").write_text(PARENT)

    def run(text: str) -> tuple[str, Profile]:
        (tmp_path / "child.py").write_text(text)
        done = queryprof(
            "run", "--no-report", "-o", tmp_path / "t.qprof", "parent.py", "child.py", cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout, read_profile(str(tmp_path / "t.qprof"))

    return run


def test_a_child_that_imports_nothing_measured_loads_next_to_nothing(recorded: Recorded) -> None:
    output, profile = recorded(LOADED)
    assert json.loads(output) == [
        "queryprof",
        "queryprof.core",
        "queryprof.core.held_signals",
        "queryprof.core.own_imports",
        "queryprof.core.user_code",
        "queryprof.hooks",
        "queryprof.hooks.first_use",
        "queryprof.hooks.libraries",
        "queryprof.recorder",
        "queryprof.recorder.autoload",
    ]
    assert len(profile.processes) == 1


@pytest.mark.parametrize("text", CHILDREN.values(), ids=CHILDREN)
@pytest.mark.repeats
def test_whatever_it_imports_first_is_counted(recorded: Recorded, text: str) -> None:
    _, profile = recorded(text)
    assert all(process.clean_end for process in profile.processes)
    (query,) = [
        one for one in profile.aggregates if one.statement == "SELECT ? + ?" and one.rows == 0
    ]
    assert query.count == 1
    frame = query.path[0]
    assert (os.path.basename(frame.file), frame.kind) == ("child.py", "user")


def test_a_span_before_the_driver_is_imported_is_kept(recorded: Recorded) -> None:
    text = (
        "import queryprof\nassert queryprof.is_installed()\nwith queryprof.span('job'):\n  import"
        f" sqlite3\n  {RUN}"
    )
    _, profile = recorded(text)
    assert {one.span for one in profile.aggregates if one.statement == "SELECT ? + ?"} == {"job"}


def test_its_settings_are_those_of_where_it_began(recorded: Recorded, tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[queryprof]\nparameters = true\n")
    _, profile = recorded(CHILDREN["after chdir"])
    assert [one.parameters for one in profile.exemplars if one.sql] != []


def test_wrong_settings_are_reported_once_and_change_nothing(
    tmp_path: Path, queryprof: Run
) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "setup.cfg").write_text("[queryprof]\nparameters = perhaps\n")
    child = (
        "import os, subprocess, sys; os.chdir('sub'); subprocess.run([sys.executable, '-c',"
        f' "import sqlite3; {RUN}; print(2)"])'
    )
    done = queryprof("run", "--no-report", "-o", "t.qprof", "parent.py", "-c", child, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr.count("this process is not recorded: ") == 1


def test_a_process_that_is_recorded_in_any_case_does_not_wait(tmp_path: Path) -> None:
    environment = {**os.environ, "QUERYPROF": str(tmp_path / "t.qprof")}
    command = [Path(QUERYPROF).with_name("python"), "-c", LOADED]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    is_installed = "queryprof.recorder.autoload" in done.stdout  # not so in an editable install
    assert not is_installed or "queryprof.recorder.session" in done.stdout


def test_its_environment_is_that_of_its_start(tmp_path: Path, queryprof: Run) -> None:
    """Its settings there (`--parameters`, a workload) apply. The program does not see them."""
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "child.py").write_text(
        f"import os; os.environ.clear(); import sqlite3; {RUN}; print(dict(os.environ))"
    )
    done = queryprof(
        "run",
        "--no-report",
        "--parameters",
        "--record-workload",
        "-o",
        "t.qprof",
        "parent.py",
        "child.py",
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "{}\n")
    profile = read_profile(str(tmp_path / "t.qprof"))
    assert [one.parameters for one in profile.exemplars if one.sql] != []
    assert [path for path in tmp_path.iterdir() if "workload" in path.name] != []


INTERRUPTED = """
import os, signal, sys, threading, time
class Late(Exception):
    pass
def handler(*args):
    raise Late
def hook(event, args):
    if event == "import" and args[0] == NAME and not sent:
        sent.append(1)
        os.kill(os.getpid(), signal.SIGALRM)
        while threading.active_count() > 1:  # the other one takes it: until the handler raises
            time.sleep(0.01)
sent = []
signal.signal(signal.SIGALRM, HANDLER)
sys.addaudithook(hook)
THREAD
try:
    import sqlite3
    time.sleep(60)
except (Late, TypeError):
    print("late", len(sent))
import sqlite3
"""
HANDLERS = {
    "in C": ("[].index", ""),
    "beside a thread": (
        "handler",
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    ),
}


@pytest.mark.parametrize(("handler", "thread"), HANDLERS.values(), ids=HANDLERS)
@pytest.mark.parametrize(
    "name", ["queryprof.recorder.session", "queryprof.hooks.drivers.sqlite3_driver", "sqlite3"]
)
@pytest.mark.repeats
def test_what_a_signals_handler_raises_meanwhile_is_the_programs(
    recorded: Recorded, name: str, handler: str, thread: str
) -> None:
    text = (
        INTERRUPTED.replace("NAME", repr(name))
        .replace("HANDLER", handler)
        .replace("THREAD", thread)
    )
    output, profile = recorded(text + RUN)
    assert output == "late 1\n"
    assert sum(one.count for one in profile.aggregates if one.statement == "SELECT ? + ?") == 2


SEEN = """
import sys
class Finder:
    def find_spec(self, name, *args):
        found.append(name)
found, called = [], []
sys.meta_path.insert(0, Finder())
sys.setprofile(lambda frame, *args: called.append(frame.f_code.co_filename))
import sqlite3
sys.setprofile(None)
print(found.count("_sqlite3"), [one for one in found if "queryprof" in one])
print([one for one in called if one.endswith(("session.py", "driver.py"))])
"""


def test_finders_and_trace_functions_of_the_program_do_not_see_it(recorded: Recorded) -> None:
    output, _ = recorded(SEEN)
    assert output == "1 []\n[]\n"


class Beginning:
    """Notes the requests, and waits on demand."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting = FirstUseFinder(self)
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.count += 1
        assert self.waiting.find_spec("queryprof.recorder.session") is None  # its own imports pass
        self.has_begun.set()
        assert self.may_end.wait(60)
        sys.meta_path.insert(0, FOUND)


class Found(importlib.abc.MetaPathFinder):
    """The importer that the recording installs."""

    spec = importlib.machinery.ModuleSpec("apsw", None)

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return self.spec if name == "apsw" else None


FOUND = Found()


@pytest.fixture
def begins(monkeypatch: pytest.MonkeyPatch) -> Beginning:
    beginning = Beginning()
    monkeypatch.setattr(sys, "meta_path", [beginning.waiting, *sys.meta_path])
    return beginning


def test_others_wait_for_the_beginning_and_find_what_it_put_in_place(begins: Beginning) -> None:
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(begins.waiting.find_spec("apsw")))
        for _ in range(3)
    ]
    threads[0].start()
    assert begins.has_begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    assert begins.waiting.find_spec("json") is None  # unmeasured imports wait for nothing
    begins.may_end.set()
    for thread in threads:
        thread.join()
    assert (begins.count, found) == (1, [Found.spec] * 3)
    assert begins.waiting not in sys.meta_path


def test_who_waits_too_long_changes_nothing_of_the_beginning(
    begins: Beginning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports of the start itself pass afterwards too."""
    monkeypatch.setattr(first_use, "MAX_WAIT_S", 0.01)
    inside = threading.Event()

    def begin() -> None:
        begins.has_begun.set()
        assert begins.may_end.wait(60)
        assert begins.waiting._thread == threading.get_ident()
        inside.set()

    monkeypatch.setattr(begins.waiting, "_begin", begin)
    thread = threading.Thread(target=begins.waiting.find_spec, args=("apsw",))
    thread.start()
    assert begins.has_begun.wait(60)
    begins.waiting.find_spec("sqlite3")  # gives up
    begins.may_end.set()
    thread.join()
    assert inside.is_set()


def test_a_fork_in_the_midst_of_the_beginning_waits_for_no_thread(begins: Beginning) -> None:
    thread = threading.Thread(target=begins.waiting.find_spec, args=("apsw",))
    thread.start()
    assert begins.has_begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads
        pid = os.fork()
    if not pid:
        # The thread may have been inside the event, which then stays locked in this process.
        begins.may_end = threading.Event()
        begins.may_end.set()
        os._exit(0 if begins.waiting.find_spec("apsw") is Found.spec and begins.count == 2 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    begins.may_end.set()
    thread.join()


def test_what_is_imported_already_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [])
    monkeypatch.setattr(sys, "modules", {"_sqlite3": sys})
    begun: list[int] = []
    FirstUseFinder(lambda: begun.append(1)).wait()
    assert (begun, sys.meta_path) == ([1], [])


def test_all_that_is_measured_is_waited_for() -> None:
    assert {"_sqlite3", *HOOK_BY_MODULE} == MEASURED
