"""Subinterpreters are not recorded, and may import queryprof."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from startup.test_processes import SELECT, WORK, Script, recorded

from conftest import Run, by_operation


def test_subinterpreters_run_on_unrecorded(queryprof: Run, script: Script) -> None:
    """Another interpreter, perhaps with its own GIL, shares the driver's functions."""
    path = script(
        WORK + "import threading\n"
        "try:\n    import _interpreters as interpreters\n"
        "except ImportError:\n    import _xxsubinterpreters as interpreters\n"
        "code = '''\n" + WORK + "work(300)\n'''\n"
        "def run():\n    other = interpreters.create()\n"
        "    interpreters.run_string(other, code)\n    interpreters.destroy(other)\n"
        "threads = [threading.Thread(target=run) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "work(300)\n"
        "for thread in threads: thread.join()\n"
        "run()\nwork(5)\n"
    )
    result, profile = recorded(queryprof, path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(profile)[SELECT] == 305


def test_subinterpreters_import_it(tmp_path: Path) -> None:
    """An application under mod_wsgi does this if it wraps itself."""
    path = tmp_path / "program.py"
    path.write_text(
        "try:\n    import _interpreters as interpreters\n"
        "except ImportError:\n    import _xxsubinterpreters as interpreters\n"
        "import sys, queryprof\n"
        "code = '''\n" + WORK + "import queryprof\n"
        "app = queryprof.WsgiMiddleware(lambda environ, start: [b'hello'])\n"
        "with queryprof.span('work'): work(3)\n"
        "queryprof.install('x.qprof')\n"
        "with queryprof.profile() as recording: work(3)\n"
        "assert not queryprof.is_installed()\n"
        "print(app({}, lambda *_: None)[0])\n'''\n"
        "other = interpreters.create()\n"
        "found = interpreters.run_string(other, code)\n"
        "sys.exit(found.formatted if found else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    assert done.stderr.count("queryprof:") == 1
    assert "this is a subinterpreter" in done.stderr
    assert not list(tmp_path.glob("*.qprof"))
