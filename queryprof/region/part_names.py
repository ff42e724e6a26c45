"""The names of the parts of recordings: files beside the trace, PATH.PID-TOKEN-NUMBER.live."""

from __future__ import annotations

import os
import stat

from queryprof.region.region_files import PART_SUFFIX, names_in, nearby, token

LONGEST_NUMBER = 10
"""Digits of a part's number."""


def parts_prefix(path: str) -> str:
    """What the paths of this process's parts of the trace at `path` begin with."""
    return f"{nearby(path)}.{os.getpid()}-{token()}"


def parts_with(prefix: str) -> list[str]:
    """The parts whose paths have this prefix, the oldest first."""
    directory, name = os.path.split(prefix)
    found = [
        os.path.join(directory, one)
        for one in names_in(directory)
        if one.startswith(f"{name}-") and one.endswith(PART_SUFFIX)
    ]
    return sorted(found, key=lambda part: (part_number(part), part))


def parts_of(path: str, pid: int) -> list[str]:
    """The parts of the trace at `path` of processes of this id, the oldest first."""
    return parts_with(f"{nearby(path)}.{pid}")


def part_path(prefix: str, number: int) -> str:
    """The path of a part."""
    return f"{prefix}-{number}{PART_SUFFIX}"


def part_number(path: str) -> int:
    """The number of a part, from 1 on; 0: it has none."""
    number = path.removesuffix(PART_SUFFIX).rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) <= LONGEST_NUMBER else 0


def trace_name(part: str) -> str:
    """The name of the trace that a file with this name is a part of, as far as the name says; "":
    it is no part.
    """
    trace, _, process = part.removesuffix(PART_SUFFIX).rpartition(".")
    pid, _, rest = process.partition("-")
    token, _, number = rest.partition("-")
    is_part = (
        part.endswith(PART_SUFFIX) and pid.isdecimal() and number.isdecimal() and token.isalnum()
    )
    return trace if is_part else ""


def parts_in_reach(path: str) -> list[list[str]]:
    """The parts of the trace at `path` of each process, the oldest first, that are files of this
    user or of the directory's owner.
    """
    directory, name = os.path.split(nearby(path))
    found: dict[str, list[str]] = {}
    for one in names_in(directory):
        part = os.path.join(directory, one)
        is_near = one.startswith(name)  # of many files, most are of other traces
        if is_near and trace_name(one) == name and has_an_owner_of(directory, part):
            found.setdefault(one.rpartition("-")[0], []).append(part)
    return [sorted(parts, key=part_number) for _, parts in sorted(found.items())]


def has_an_owner_of(directory: str, path: str) -> bool:
    """Whether it is a regular file of this user, or of the directory's owner; for root, of any
    user.
    """
    try:
        status, owner = os.lstat(path), os.stat(directory or ".").st_uid
    except OSError:
        return False
    is_ours = os.getuid() in (0, status.st_uid) or status.st_uid == owner
    return stat.S_ISREG(status.st_mode) and is_ours
