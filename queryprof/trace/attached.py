"""Find the names of databases that a process only attached.

Such a name is a value in a statement, and values are not recorded. The process records the file's
identity instead (see queryprof/core/counters/database_paths.h).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

ATTACHED = "(attached "
GOLDEN_RATIO, BITS = 0x9E3779B97F4A7C15, (1 << 64) - 1


def file_identity(status: os.stat_result) -> int:
    """Return an identity of a file that is the same in every process."""
    return (status.st_dev * GOLDEN_RATIO & BITS) ^ status.st_ino


def attached_names(databases: Iterable[str]) -> Mapping[str, str]:
    """Map the name of each attached database to another recorded name of the same file."""
    names = set(databases)
    attached = {name for name in names if name.startswith(ATTACHED)}
    found = {}
    for path in sorted(names - attached) if attached else ():
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        name = f"{ATTACHED}{file_identity(status):016x})"
        if name in attached:
            found[name] = path
    return found
