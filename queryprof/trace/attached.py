"""The names of databases that a process has only attached: it records what the system calls their
files (see queryprof/core/counters/database_paths.h), as the name itself is a value in a statement.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

ATTACHED = "(attached "
GOLDEN_RATIO, BITS = 0x9E3779B97F4A7C15, (1 << 64) - 1


def identity_of(status: os.stat_result) -> int:
    """The same for a file in each process."""
    return (status.st_dev * GOLDEN_RATIO & BITS) ^ status.st_ino


def names_of(databases: Iterable[str]) -> Mapping[str, str]:
    """By an attached database's name among them, that of another which is the same file now."""
    names = set(databases)
    attached = {name for name in names if name.startswith(ATTACHED)}
    found = {}
    for path in sorted(names - attached) if attached else ():
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        name = f"{ATTACHED}{identity_of(status):016x})"
        if name in attached:
            found[name] = path
    return found
