"""A folder for temporary files that goes with its process, however that ends.

A process of its own makes and removes it, which waits for the end of its standard input: this file
is its program, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

TRIES, BETWEEN_TRIES_S = 1200, 0.05
"""A process that writes to the folder may end a while after the one that it belongs to: it may have
to start first."""


@contextmanager
def passing_folder() -> Iterator[str]:
    """A new folder in TMPDIR; it is gone after the block. Raises OSError: it cannot be made."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert keeper.stdin
    assert keeper.stdout
    try:
        path = os.fsdecode(keeper.stdout.readline().removesuffix(b"\0\n"))
        if not path:
            raise OSError(f"no folder can be made in {tempfile.gettempdir()}")
        yield path
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        keeper.wait()


def main() -> None:
    """Makes a folder, writes its path, and removes it at the end of the standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    path = tempfile.mkdtemp(prefix="queryprof-")
    try:
        sys.stdout.buffer.write(os.fsencode(path) + b"\0\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        for _ in range(TRIES):
            shutil.rmtree(path, ignore_errors=True)
            if not os.path.lexists(path):
                break
            time.sleep(BETWEEN_TRIES_S)


if __name__ == "__main__":
    main()
