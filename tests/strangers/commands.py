"""Runs commands on changed files, many in one process, and says what each did: a program of the
tests.

It is started as `python commands.py PLAN`: a JSON list of [directory, [arguments, ...]], and prints
a line of JSON for each command. A directory holds what was given; `out` in it is what may be
written.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from queryprof.cli.main import main

HANG_S = 100
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
REMOVES = frozenset(
    {
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.mkdir",
        "os.truncate",
        "os.link",
        "os.symlink",
        "os.chmod",
    }
)

sys.dont_write_bytecode = True  # what Python itself writes is no output of a command

written: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes each path that this process opens for writing, or changes."""
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not flags & WRITES:
            return
        written.append(os.path.abspath(os.fsdecode(path)))
    elif event in REMOVES:
        paths = arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]
        written.extend(os.path.abspath(os.fsdecode(p)) for p in paths if isinstance(p, str | bytes))


def state(directory: Path) -> dict[str, str]:
    """What is in a directory and in that beside it which nothing may touch."""
    found = {}
    for top in (directory, directory.parent / "victim", directory.parent / "base"):
        for path in sorted(top.rglob("*")):
            if path.is_relative_to(directory / "out"):
                continue
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            kind = os.readlink(path) if path.is_symlink() else str(path.lstat().st_mode)
            found[os.path.relpath(path, directory)] = f"{kind} {hashlib.md5(content).hexdigest()}"
    return found


def run(directory: Path, arguments: list[str], temporary: str) -> dict[str, Any]:
    os.chdir(directory)
    before = state(directory)
    written.clear()
    start_s = time.monotonic()
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    streams = sys.stdout, sys.stderr
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        sys.argv, sys.stdout, sys.stderr = ["queryprof", *arguments], out, err
        status: object = 0
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            status = "".join(traceback.format_exc().splitlines(keepends=True)[-8:])
        finally:
            with contextlib.suppress(ValueError, OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            sys.stdout, sys.stderr = streams
        err.seek(0)
        said = err.read()
    faulthandler.cancel_dump_traceback_later()
    allowed = (
        str(directory / "out"),
        temporary,
        "/dev/null",
        "/dev/shm/queryprof",
        str(directory / "k"),
    )
    after = state(directory)
    return {
        "status": status,
        "said": said[-400:],
        "written": sorted({path for path in written if not path.startswith(allowed)}),
        "changed": sorted(
            path
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path) and not path.startswith("k")
        ),
        "left": os.listdir(temporary),
        "took_s": round(time.monotonic() - start_s, 1),
    }


if __name__ == "__main__":
    faulthandler.enable()
    sys.addaudithook(watch)
    kept = tempfile.gettempdir()
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what processes of the commands print is no result
    for place, command in json.loads(Path(sys.argv[1]).read_text()):
        print(json.dumps({"of": [place, command]}), file=results, flush=True)
        print(json.dumps(run(Path(place), command, kept)), file=results, flush=True)
