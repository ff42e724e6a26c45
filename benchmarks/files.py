"""Measure the cost of watching SQLite's files.

Point selects on a file, each in its own transaction, are recorded with and without watching its
VFS. Both alternate, each time in a new process. To prevent watching, this program replaces a
function of SQLite's VFS before recording starts: queryprof does not watch a VFS that others have
changed.

    python benchmarks/files.py [--rounds 9]
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

SELECTS = 2000
BATCHES = 25
XOPEN_AT = 5 * 8
"""Bytes from the start of a sqlite3_vfs."""

VFSS = (b"unix", b"unix-none", b"unix-dotfile", b"unix-excl")


def exchange_open() -> list[Any]:
    """Replace SQLite's functions by ones that call them. They live as long as the returned list."""
    find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_void_p)
    kept = []
    for name in VFSS:
        place = ctypes.c_void_p.from_address(find(name) + XOPEN_AT)
        own = kind(place.value)
        exchanged = kind(lambda *arguments, own=own: own(*arguments))
        kept += [own, exchanged]
        place.value = ctypes.cast(exchanged, ctypes.c_void_p).value
    return kept


def shortest_ns(path: str, watched: str) -> float:
    """Return the time per select of the shortest batch, recorded in this process."""
    from queryprof import install, uninstall

    kept = exchange_open() if watched == "no" else []
    install(f"{path}-{watched}.qprof")
    connection = sqlite3.connect(path, isolation_level=None)
    cursor = connection.cursor()
    batches = []
    for _ in range(BATCHES):
        start = time.perf_counter_ns()
        for number in range(SELECTS):
            cursor.execute("SELECT b FROM t WHERE a = ?", (number,)).fetchone()
        batches.append((time.perf_counter_ns() - start) / SELECTS)
    connection.close()
    uninstall()
    Path(f"{path}-{watched}.qprof").unlink()
    del kept  # SQLite calls it until here
    return min(batches)


def measure(path: str, watched: str) -> float:
    command = (sys.executable, __file__, "--one", path, watched)
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@click.command()
@click.option("--rounds", default=9, show_default=True, help="Processes of each.")
@click.option("--one", nargs=2, help="Measures once: the database, and whether it is watched.")
def main(rounds: int, one: tuple[str, str] | None) -> None:
    """Print the cost of watching files, for a rollback journal and a write-ahead log."""
    if one:
        print(shortest_ns(*one))
        return
    print("a point select in autocommit     not watched     watched     median    minimum")
    for mode in ("delete", "wal"):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/bench.db"
            keeps_log = sqlite3.connect(path, isolation_level=None)
            keeps_log.execute(f"PRAGMA journal_mode = {mode}")
            keeps_log.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
            rows = [(number, 2 * number) for number in range(SELECTS)]
            keeps_log.executemany("INSERT INTO t VALUES (?, ?)", [rows[0]])
            keeps_log.execute("BEGIN")
            keeps_log.executemany("INSERT INTO t VALUES (?, ?)", rows[1:])
            keeps_log.execute("COMMIT")
            found: dict[str, list[float]] = {"no": [], "yes": []}
            for number in range(rounds):
                for watched in ("no", "yes") if number % 2 else ("yes", "no"):
                    found[watched].append(measure(path, watched))
            keeps_log.close()
        without, with_it = (statistics.median(found[name]) for name in ("no", "yes"))
        least = min(found["yes"]) / min(found["no"])
        print(
            f"journal_mode = {mode:<12} {without:>16,.0f} ns {with_it:>8,.0f} ns"
            f"   x{with_it / without:.3f}    x{least:.3f}"
        )


if __name__ == "__main__":
    main()
