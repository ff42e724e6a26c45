"""Sends what processes have left, and dies at a chosen one of its file operations.

ship_faults.py PLACE STORE N            dies at operation N, and exits with 9
ship_faults.py PLACE STORE every COUNT  dies at each, and again half as far; then a run that
                                        ends: prints where COUNT executions are not in the store
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.fleet.location import Directory
from queryprof.fleet.shipping import Shipper, Shipping

OPERATIONS = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "link")
DIED = 9


def ship_and_die(place: str, store: str, number: int) -> None:
    """Send all finished files, and die."""
    dies_at(number)
    ship(place, store)


def dies_at(number: int) -> None:
    """Make this process die without a trace at its file operation of this number."""
    left = [number]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os._exit(DIED)
            return real(*arguments, **named)

        return operation

    for name in OPERATIONS:
        setattr(os, name, dying(getattr(os, name)))


def ship(place: str, store: str, kept_bytes: int = 10**9) -> None:
    """Send all finished files."""
    with Shipper([place], Directory(store, "ship"), Shipping(kept_bytes, 1.0), print) as shipper:
        shipper.run()


def in_child(work: Callable[[], object]) -> int:
    """Run a function in a child process, and return its exit status."""
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def executions(store: str) -> int:
    """Return the number of execute calls in a store."""
    import pyarrow.parquet as pq

    total = 0
    for folder, _, names in os.walk(os.path.join(store, "aggregate")):
        for name in names:
            table = pq.ParquetFile(os.path.join(folder, name)).read(["operation", "count"])
            total += sum(one["count"] for one in table.to_pylist() if one["operation"] == "execute")
    return total


def compare(store: str, wanted: int) -> None:
    """Raise AssertionError if a store has another number."""
    found = executions(store)
    if found != wanted:
        raise AssertionError(f"{found} executions, not {wanted}")


def unfinished(directory: str) -> list[str]:
    """Return the hidden files and folders below a directory."""
    return [
        os.path.join(folder, name)
        for folder, folders, names in os.walk(directory)
        for name in [*folders, *names]
        if name.startswith(".")
    ]


def at_every_operation(place: str, store: str, wanted: int) -> None:
    """See the module's docstring."""
    shutil.copytree(place, f"{place}.kept")
    number = 0
    while True:
        number += 1
        shutil.rmtree(place)
        shutil.copytree(f"{place}.kept", place)
        shutil.rmtree(store, ignore_errors=True)
        first = in_child(partial(ship_and_die, place, store, number))
        in_child(partial(ship_and_die, place, store, 1 + number // 2))
        last = in_child(lambda: ship(place, store))
        wrong = in_child(partial(compare, store, wanted))
        left = [*os.listdir(place), *unfinished(store)]
        if first not in (0, DIED) or last or wrong or left:
            print("wrong at", number, first, last, wrong, left)
        if not first:
            print("operations", number)
            return


if __name__ == "__main__":
    given, to, what = sys.argv[1:4]
    if what == "every":
        at_every_operation(given, to, int(sys.argv[4]))
    else:
        dies_at(int(what))
        try:
            ship(given, to)
        except QueryprofError as error:
            print(error)
            sys.exit(3)
