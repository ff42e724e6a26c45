"""Names of parts of recordings: files next to the trace, PATH.PID-TOKEN-NUMBER.live."""

from __future__ import annotations

import os
import stat

from queryprof.region.region_files import PART_SUFFIX, list_names, temporary_stem, unique_token

MAX_NUMBER_DIGITS = 10
"""Maximum digits of a part's number."""


def parts_prefix(path: str) -> str:
    """Return the common start of this process's part paths for the trace at `path`."""
    return f"{temporary_stem(path)}.{os.getpid()}-{unique_token()}"


def parts_with_prefix(prefix: str) -> list[str]:
    """Return the parts whose paths have this prefix, oldest first."""
    directory, name = os.path.split(prefix)
    found = [
        os.path.join(directory, one)
        for one in list_names(directory)
        if one.startswith(f"{name}-") and one.endswith(PART_SUFFIX)
    ]
    return sorted(found, key=lambda part: (part_number(part), part))


def parts_of_trace(path: str, pid: int) -> list[str]:
    """Return the parts of the trace at `path` from processes with this id, oldest first."""
    return parts_with_prefix(f"{temporary_stem(path)}.{pid}")


def part_path(prefix: str, number: int) -> str:
    """Return the path of a part."""
    return f"{prefix}-{number}{PART_SUFFIX}"


def part_number(path: str) -> int:
    """Return the number of a part, which is 1 or more; 0 if the path is not a part."""
    number = path.removesuffix(PART_SUFFIX).rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) <= MAX_NUMBER_DIGITS else 0


def trace_name(part: str) -> str:
    """Return the name of a part's trace, or the start of the name if it is long; "" if the file is
    not a part.
    """
    trace, _, process = part.removesuffix(PART_SUFFIX).rpartition(".")
    pid, _, rest = process.partition("-")
    token, _, number = rest.partition("-")
    is_part = (
        part.endswith(PART_SUFFIX) and pid.isdecimal() and number.isdecimal() and token.isalnum()
    )
    return trace if is_part else ""


def parts_by_process(path: str) -> list[list[str]]:
    """Return the parts of the trace at `path`, by process, oldest first.

    Includes only files of this user and of the directory's owner.
    """
    directory, name = os.path.split(temporary_stem(path))
    found: dict[str, list[str]] = {}
    for one in list_names(directory):
        part = os.path.join(directory, one)
        # quick check: most files in a large directory belong to other traces
        is_near = one.startswith(name)
        if is_near and trace_name(one) == name and is_owned_as_directory(directory, part):
            found.setdefault(one.rpartition("-")[0], []).append(part)
    return [sorted(parts, key=part_number) for _, parts in sorted(found.items())]


def is_owned_as_directory(directory: str, path: str) -> bool:
    """Return whether a file is regular and owned by this user or by the directory's owner.

    For root, any owner is fine.
    """
    try:
        status, owner = os.lstat(path), os.stat(directory or ".").st_uid
    except OSError:
        return False
    is_ours = os.getuid() in (0, status.st_uid) or status.st_uid == owner
    return stat.S_ISREG(status.st_mode) and is_ours
