"""Run the tests in different environments: users, languages, loads, namespaces, other Debians.

    python tests/anywhere.py SLOW_MACHINE.so TIMES [NAME...] -- PYTEST [ARGUMENT...]

It prints one line for each run, the skipped tests with their reasons, and the whole output of a
failed run. The exit status is 1 if a run failed, and 2 if a NAME is unknown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

BUSY_PROCESSES = 4


@dataclass(frozen=True)
class Surroundings:
    """An environment for the tests.

    Attributes:
        command: the command that runs pytest here.
        debian: the command that runs pytest in a separate Debian.
        is_slow: whether calls of the C library are delayed at random (tests/slow_machine.c).
    """

    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    debian: tuple[str, ...] = ()
    is_busy: bool = False
    is_slow: bool = False
    has_own_home: bool = False


SHELL = ("sh", "-c")
OTHER_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
CONTAINER = ("unshare", "--net", "--ipc", "--mount", "--pid", "--fork")
IN_CONTAINER = (
    "mount -t tmpfs -o size=64m tmpfs /dev/shm && mount -t proc proc /proc && ip link set lo up"
    ' && exec "$@"'
)
WITHOUT_SERVERS = (
    "for one in /usr/lib/postgresql $(which -a initdb mariadbd chromium chromium-headless-shell);"
    " do if [ -d $one ]; then mount -t tmpfs tmpfs $one; else mount --bind /dev/null $one; fi;"
    ' done; exec "$@"'
)
SURROUNDINGS = {
    "quiet": Surroundings(),
    "busy": Surroundings(is_busy=True),
    "slow": Surroundings(is_slow=True),
    "one-core": Surroundings(("nice", "-n", "19", "taskset", "-c", "0"), is_busy=True),
    "user": Surroundings(
        (*OTHER_USER, *SHELL, 'umask 077; exec "$@"', "sh"),
        {"LANG": "C", "LC_ALL": "C", "TZ": "Pacific/Apia"},
        has_own_home=True,
    ),
    "container": Surroundings((*CONTAINER, *SHELL, IN_CONTAINER, "sh")),
    "no-servers": Surroundings(("unshare", "--mount", *SHELL, WITHOUT_SERVERS, "sh")),
    "bookworm": Surroundings(
        environment={"QUERYPROF_TEST_USER": "1"},
        debian=("tests/in-debian.sh", "bookworm", "amd64", "3.11"),
    ),
    "sid": Surroundings(debian=("tests/in-debian.sh", "sid", "amd64", "3.14")),
}
"""By name. The last two make a Debian of their own, as root."""


def main() -> int:
    """Run the tests as the command line says; return the exit status."""
    split = sys.argv.index("--")
    (slow_machine, times, *names), pytest = sys.argv[1:split], sys.argv[split + 1 :]
    wrong = set(names) - set(SURROUNDINGS)
    if wrong:
        print(f"unknown: {', '.join(sorted(wrong))}; known: {', '.join(SURROUNDINGS)}")
        return 2
    failed = []
    for number in range(int(times)):
        for name in names or SURROUNDINGS:
            start_s = time.monotonic()
            done = run(SURROUNDINGS[name], pytest, slow_machine, number)
            lines = done.stdout.splitlines() or [f"status {done.returncode}"]
            if done.returncode:
                failed.append(name)
                print(done.stdout, done.stderr, sep="\n")
            else:
                print(*(line for line in lines if line.startswith("SKIPPED")), sep="\n")
            took_s = time.monotonic() - start_s
            print(f"{name}, {number + 1} of {times}: {lines[-1]} ({took_s:.0f} s)", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def run(
    place: Surroundings, pytest: list[str], slow_machine: str, seed: int
) -> subprocess.CompletedProcess[str]:
    """Run the tests in one of the surroundings."""
    with ExitStack() as stack:
        for _ in range(BUSY_PROCESSES if place.is_busy else 0):
            # At the tests' own priority and cores: below others, they would get no time at all.
            busy = subprocess.Popen([*place.command, sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        environment = {**os.environ, **place.environment}
        if place.has_own_home:
            home = tempfile.TemporaryDirectory(dir="/var/tmp")
            environment["HOME"] = stack.enter_context(home)
        if place.is_slow:
            environment |= {"LD_PRELOAD": slow_machine, "SLOW_MACHINE_SEED": str(seed)}
        command = [*place.command, *place.debian, *pytest]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


if __name__ == "__main__":
    sys.exit(main())
