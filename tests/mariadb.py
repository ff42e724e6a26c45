"""A MariaDB server for tests, in its own directory, only on a local socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_SECONDS_TO_START = 60


def is_installed() -> bool:
    return bool(shutil.which("mariadbd") and shutil.which("mariadb-install-db"))


@contextmanager
def server() -> Iterator[str]:
    """Run a server in its own directory. The value is the path of its socket, where the user root
    has no password.
    """
    directory = Path(tempfile.mkdtemp(prefix="queryprof-my-"))
    directory.chmod(0o711)
    data = directory / "data"
    data.mkdir()
    user = pwd.getpwuid(os.geteuid()).pw_name
    if sys.platform != "win32" and os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = "mysql" if "mysql" in names else "nobody"
        shutil.chown(data, user)
    subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={user}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    socket = data / "socket"
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen(
            [
                "mariadbd",
                "--no-defaults",
                f"--datadir={data}",
                f"--socket={socket}",
                f"--user={user}",
                "--skip-networking",
                f"--pid-file={data}/pid",
            ],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        until = time.monotonic() + MOST_SECONDS_TO_START
        while not socket.exists():  # it is made when the server accepts connections
            assert process.poll() is None, Path(directory / "log").read_text()
            assert time.monotonic() < until, Path(directory / "log").read_text()
            time.sleep(0.05)
        yield str(socket)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(directory, ignore_errors=True)
