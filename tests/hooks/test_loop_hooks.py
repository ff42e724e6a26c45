"""The other loops: uvloop, trio, Twisted; late imports, forks and detaching."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.model import Loop, Profile

Script = Callable[[str], Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
    " SELECT count(*) FROM n"
)
TESTS = str(Path(__file__).parents[1])
QUERY = (
    f"import asyncio, sqlite3, sys, time; sys.path.insert(0, {TESTS!r});"
    " from core.loop_programs import until_seen\n"
    "c = sqlite3.connect(':memory:', check_same_thread=False)\n"
)
ASK = (
    "def ask():\n"
    f"    with until_seen() as seen: [c.execute({SLOW!r}).fetchall() for _ in iter(seen.is_set, True)]\n"
)
WAIT = "def wait():\n    with until_seen() as seen: seen.wait(60)\n"
"""Steps that last until the watchdog has seen them. They are on one line, so the time of the
watchdog's look does not matter.
"""


def categories(loop: Loop) -> set[tuple[str, int]]:
    """Return (category, line of a frame) of each stall. A busy machine may add some."""
    (finding,) = Report(Profile((), (), loops=(loop,))).loops
    return {(one.category, frame.line) for one in finding.stalls for frame in one.stall.path}


def recorded(queryprof: Run, path: Path) -> Profile:
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return read_profile("x.qprof")


@pytest.mark.parametrize(
    "start",
    [
        "uvloop.run(main())",
        "asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main())",
        (
            "__import__('warnings').simplefilter('ignore')\n"  # policies go away
            "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy()); asyncio.run(main())"
        ),
    ],
    ids=["run", "factory", "policy"],
)
@pytest.mark.repeats
def test_uvloop(queryprof: Run, script: Script, start: str) -> None:
    """Its handles are its own: the heartbeat, the watchdog and the probes measure it."""
    pytest.importorskip("uvloop")
    path = script(
        QUERY + ASK + WAIT + "import uvloop\n"
        "async def main():\n"
        "    await asyncio.sleep(0.15)\n"
        "    wait()\n"
        "    await asyncio.sleep(0.15)\n"
        "    ask()\n"
        "    await asyncio.sleep(0.15)\n" + start + "\n"
    )
    (loop,) = recorded(queryprof, path).loops
    assert (loop.kind, loop.has_steps) == ("uvloop", False)
    assert loop.beat_lag.count > 5
    assert categories(loop) >= {("database", 4), ("waiting", 6)}
    asked = max(loop.stalls, key=lambda stall: stall.database_ns)
    assert asked.causes[0].statement.startswith("WITH RECURSIVE")


@pytest.mark.slow
def test_trio(queryprof: Run, script: Script) -> None:
    pytest.importorskip("trio")
    path = script(
        QUERY + ASK + WAIT + "import trio\n"
        "async def sleeper():\n"
        "    wait()\n"
        "async def asker():\n"
        "    ask()\n"
        "async def main():\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(sleeper)\n"
        "        nursery.start_soon(asker)\n"
        "        await trio.sleep(0.4)\n"
        "trio.run(main)\n"
    )
    (loop,) = recorded(queryprof, path).loops
    assert loop.kind == "trio"
    assert categories(loop) >= {("database", 4), ("waiting", 6)}
    assert {"sleeper", "asker", "main"} <= {step.function.function for step in loop.functions}
    assert loop.beat_lag.count >= 3
    assert 0 < loop.busy_ns < loop.run_ns


@pytest.mark.slow
@pytest.mark.parametrize("reactor", ["default", "select", "asyncio"])
def test_twisted(queryprof: Run, script: Script, reactor: str) -> None:
    pytest.importorskip("twisted")
    choose = {
        "default": "",
        "select": "from twisted.internet import selectreactor as r; r.install()",
        "asyncio": "from twisted.internet import asyncioreactor as r; r.install()",
    }[reactor]
    path = script(
        QUERY + ASK + WAIT + choose + "\nfrom twisted.internet import reactor\n"
        "reactor.callLater(0.05, wait)\n"
        "reactor.callLater(0.1, lambda: None)\n"
        "reactor.callLater(0.6, ask)\n"
        "reactor.callLater(1.4, reactor.stop)\n"
        "reactor.run()\n"
    )
    (loop,) = recorded(queryprof, path).loops
    assert loop.kind == ("asyncio" if reactor == "asyncio" else "twisted")
    assert categories(loop) >= {("database", 4), ("waiting", 6)}
    assert loop.beat_lag.count >= 3  # on a busy machine many are skipped
    assert loop.beat_lag.max_ns > 50_000_000


@pytest.mark.slow
def test_a_fork_inside_a_running_loop(queryprof: Run, script: Script) -> None:
    """Parent and child continue with their loops, each with its own figures."""
    path = script(
        QUERY + WAIT + "import os\n"
        "async def block(times):\n"
        "    for _ in range(times):\n"
        "        wait()\n"
        "        await asyncio.sleep(0.02)\n"
        "async def main():\n"
        "    await block(1)\n"
        "    if os.fork() == 0:\n"
        "        asyncio.run(block(3))\n"  # the parent's loop does not run in the child
        "        os._exit(0)\n"
        "    time.sleep(0.08)\n"  # the watchdog continues with the next step
        "    await asyncio.sleep(0)\n"
        "    await block(5)\n"
        "    os.wait()\n"
        "asyncio.run(main())\n"
    )
    profile = recorded(queryprof, path)
    counts = sorted(
        sum(one.count for one in loop.stalls if "wait" in {frame.function for frame in one.path})
        for loop in profile.loops
    )
    assert counts == [3, 6]
    assert max(sum(one.count for one in loop.stalls) for loop in profile.loops) >= 7
    assert 4 in {frame.line for loop in profile.loops for s in loop.stalls for frame in s.path}
    assert len({loop.thread.process_id for loop in profile.loops}) == 2


def test_a_stall_in_a_process_that_is_killed(queryprof: Run, script: Script) -> None:
    path = script(
        QUERY + "import os, signal\n"
        "async def main():\n"
        "    with until_seen(least_ns=500_000_000) as seen: seen.wait(60)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert result.returncode == -9
    (loop,) = read_profile("x.qprof").loops
    (stall,) = loop.stalls
    assert stall.count == 1
    assert 5 in {frame.line for frame in stall.path}
    assert stall.total_ns > 500_000_000


@pytest.mark.once
@pytest.mark.slow
def test_the_threshold_is_the_persons_choice(queryprof: Run, script: Script) -> None:
    path = script(
        "import asyncio, time\n"
        "async def main():\n"
        "    for _ in range(3):\n"
        "        time.sleep(0.02)\n"
        "        await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    for stall_ms, count in (("10", 3), ("60000", 0)):
        environment = {"QUERYPROF_STALL_MS": stall_ms}
        result = queryprof("run", "--no-report", "-o", "x.qprof", path, env=environment)
        assert result.returncode == 0
        (loop,) = read_profile("x.qprof").loops
        assert count == sum(one.count for one in loop.stalls if one.function.function == "main")
    result = queryprof("run", path, env={"QUERYPROF_STALL_MS": "0"})
    assert result.returncode == 2


def test_a_module_imported_late_has_its_own_loader() -> None:
    """An import shows no trace of the hook, and a missing library stays missing."""
    code = (
        "import queryprof, sys\n"
        "queryprof.install('x.qprof')\n"
        "hook = sys.meta_path[0]\n"
        "assert 'queryprof' in type(hook).__module__\n"
        "import asyncio.base_events as b\n"
        "assert type(b.__loader__).__name__ == 'SourceFileLoader', b.__loader__\n"
        "assert type(b.__spec__.loader).__name__ == 'SourceFileLoader'\n"
        "run = b.BaseEventLoop.__dict__['run_forever']\n"
        "assert 'Probe' in type(run).__name__ or queryprof.core._core.is_measured_in_place(run)\n"
        "try:\n    import uvloop_that_is_not_there\nexcept ImportError: pass\n"
        "queryprof.uninstall()\n"
        "assert hook not in sys.meta_path\n"
        "run = b.BaseEventLoop.__dict__['run_forever']\n"
        "assert type(run).__name__ == 'function' and not queryprof.core._core.is_measured_in_place(run)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_what_is_attached_late_is_put_back() -> None:
    """Every hook of an installed library restores the original objects."""
    code = (
        "import queryprof, asyncio, importlib\n"
        "from queryprof.core import _core\n"
        "places = [('asyncio.events', 'Handle', '_run'),\n"
        "          ('asyncio.base_events', 'BaseEventLoop', 'run_forever'),\n"
        "          ('uvloop', 'Loop', 'run_forever'), ('trio._core._run', None, 'setup_runner'),\n"
        "          ('twisted.internet.base', 'ReactorBase', 'runUntilCurrent'),\n"
        "          ('twisted.internet.base', 'ReactorBase', 'mainLoop'),\n"
        "          ('twisted.internet.selectreactor', 'SelectReactor', '_doReadOrWrite')]\n"
        "def look():\n"
        "    for module, owner, name in places:\n"
        "        try:\n            found = importlib.import_module(module)\n"
        "        except ImportError:\n            continue\n"
        "        found = getattr(found, owner) if owner else found\n"
        "        found = vars(found).get(name)\n"
        "        yield id(found), _core.is_measured_in_place(found)\n"
        "before = list(look())\n"
        "with queryprof.profile():\n"
        "    during = list(look())\n"
        "assert all(a != b for a, b in zip(before, during))\n"
        "assert all(a == b for a, b in zip(before, look()))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_queries_in_other_threads_do_not_count_for_the_loop() -> None:
    """The loop does not wait for asyncio.to_thread."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)

    async def main() -> None:
        await asyncio.to_thread(lambda: connection.execute(SLOW).fetchall())

    with queryprof.profile() as recording:
        asyncio.run(main())
    connection.close()
    (loop,) = recording.profile.loops
    assert sum(stall.database_ns for stall in loop.stalls) == 0
    assert sum(step.database_ns for step in loop.functions) == 0


def test_a_loop_in_a_thread_that_dies(queryprof: Run, script: Script) -> None:
    """An exception leaves the loop, or the process ends. The next thread's loop continues."""
    path = script(
        "import asyncio, threading, time\nasync def die():\n   "
        " asyncio.get_running_loop().call_soon(leave)\n    await asyncio.sleep(10)\ndef leave():\n "
        "   raise SystemExit\nasync def block():\n    time.sleep(0.08)\nasync def forever():\n   "
        " runs.set()\n    await asyncio.sleep(60)\ndef run(main):\n    thread ="
        " threading.Thread(target=asyncio.run, args=(main(),), name=main.__name__)\n   "
        " thread.start()\n    thread.join()\nfor _ in range(20): run(die)\nrun(block)\nruns ="
        " threading.Event()\nthreading.Thread(target=asyncio.run, args=(forever(),),"
        " name='forever', daemon=True).start()\nruns.wait(60)\n"
    )
    loops = {loop.thread.name: loop for loop in recorded(queryprof, path).loops}
    assert set(loops) == {"die", "block", "forever"}
    assert loops["die"].runs >= 20
    stalls = loops["block"].stalls
    assert sum(one.count for one in stalls if one.function.function == "block") == 1
