"""A folder for temporary files that is removed when its process ends, in whatever way.

A separate process creates and removes the folder, and waits for the end of its standard input. This
file is also that process's program.
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

MAX_TRIES, BETWEEN_TRIES_S = 1200, 0.05
"""Number and interval of attempts to remove the folder. A process that writes to the folder may end
some time after the folder's owner, or may not even have started yet.
"""


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Create a folder in TMPDIR, and remove it after the block. Raises OSError."""
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
    """Create a folder, write its path, and remove it at the end of the standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    path = tempfile.mkdtemp(prefix="queryprof-")
    try:
        sys.stdout.buffer.write(os.fsencode(path) + b"\0\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        for _ in range(MAX_TRIES):
            shutil.rmtree(path, ignore_errors=True)
            if not os.path.lexists(path):
                break
            time.sleep(BETWEEN_TRIES_S)


if __name__ == "__main__":
    main()
