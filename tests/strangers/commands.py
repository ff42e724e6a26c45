"""A program of the tests: run commands on changed files, many in one process, and report on each.

It is started as `python commands.py PLAN`, where PLAN is a JSON list of [directory, [arguments,
...]], and prints a line of JSON for each command. A directory holds the given files; only `out` in
it may be written.
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

sys.dont_write_bytecode = True  # Python's own files are no output of a command

written: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note each path that this process opens for writing, or changes."""
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not flags & WRITES:
            return
        written.append(os.path.abspath(os.fsdecode(path)))
    elif event in REMOVES:
        both = event in ("os.rename", "os.link")
        paths = arguments[:2] if both else arguments[event == "os.symlink" :][:1]
        handles = arguments[2:4] if both else [-1 if event == "os.truncate" else arguments[-1]]
        for path, handle in zip(paths, handles, strict=False):
            above = f"/proc/self/fd/{handle}" if isinstance(handle, int) and handle >= 0 else "."
            if isinstance(path, str | bytes):
                whole = os.path.join(os.path.realpath(above), os.fsdecode(path))
                written.append(os.path.normpath(whole))


def digest(path: Path) -> str:
    """Return the hash of a file's data and its position. Holes are skipped."""
    found = hashlib.md5()
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        handle, at = file.fileno(), 0
        size = os.fstat(handle).st_size
        while at < size:
            try:
                at = os.lseek(handle, at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(handle, at, os.SEEK_HOLE)
            found.update(f"{at} ".encode() + os.pread(handle, end - at, at))
            at = end
    found.update(str(size).encode())
    return found.hexdigest()


def state(directory: Path) -> dict[str, str]:
    """Return the state of a directory, and of the one next to it that must not change."""
    found = {}
    for top in (directory, directory.parent / "victim", directory.parent / "base"):
        for path in sorted(top.rglob("*")):
            if path.is_relative_to(directory / "out"):
                continue
            kind = os.readlink(path) if path.is_symlink() else str(path.lstat().st_mode)
            found[os.path.relpath(path, directory)] = f"{kind} {digest(path)}"
    return found


def run(
    directory: Path, arguments: list[str], temporary: str, may_change: tuple[str, ...] = ("k",)
) -> dict[str, Any]:
    """Run a command.

    Args:
        may_change: prefixes of the names that it may change, in addition to `out`.
    """
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
        out.buffer.seek(0)
        message, shown = err.read(), out.buffer.read().decode("utf-8", "replace")
    faulthandler.cancel_dump_traceback_later()
    allowed = (
        str(directory / "out"),
        temporary,
        "/dev/null",
        "/dev/shm/queryprof",
        *(str(directory / name) for name in may_change),
    )
    after = state(directory)
    return {
        "status": status,
        "message": message[-400:],
        "shown": shown,
        "written": sorted({path for path in written if not path.startswith(allowed)}),
        "changed": sorted(
            path
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path) and not path.startswith(may_change)
        ),
        "left": os.listdir(temporary),
        "took_s": round(time.monotonic() - start_s, 1),
    }


if __name__ == "__main__":
    faulthandler.enable()
    sys.addaudithook(watch)
    kept = tempfile.gettempdir()
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of child processes is no result
    for place, command in json.loads(Path(sys.argv[1]).read_text()):
        print(json.dumps({"of": [place, command]}), file=results, flush=True)
        result = run(Path(place), command, kept)
        del result["shown"]
        print(json.dumps(result), file=results, flush=True)
