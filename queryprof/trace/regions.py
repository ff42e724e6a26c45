"""Where the regions of a recording are, whose they are, and whether their processes live.

A region is a file in the system's shared memory; a part of a recording is a file beside the trace.
What a killed process leaves is found by the trace's path.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queryprof.trace.region import Region

SHARED_MEMORY = "/dev/shm"  # noqa: S108 files there have names of their own and one owner
PREFIX = "queryprof"
PART_SUFFIX = ".live"

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def directories() -> list[str]:
    """Directories that may be memory, best first."""
    named = [SHARED_MEMORY, os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", "")]
    return [path for path in dict.fromkeys(named) if path.startswith("/") and "\n" not in path]


def region_name(path: str) -> str:
    """What the names of the regions of the trace at this absolute path begin with, up to the
    process: the user, and the path's hash (FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/).
    """
    key = FNV_OFFSET
    for byte in os.fsencode(path):
        key = (key ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{PREFIX}-{os.getuid() if hasattr(os, 'getuid') else 0}-{key:016x}"


def parts_prefix(path: str) -> str:
    """What the paths of this process's parts of the trace at `path` begin with."""
    return f"{path}.{os.getpid()}"


def parts_of(path: str, pid: int | None = None) -> list[str]:
    """The parts of the trace at `path`, of one process or of all, the oldest first."""
    directory, name = os.path.split(path)
    wanted = f"{name}." if pid is None else f"{name}.{pid}-"
    found = [
        os.path.join(directory, one)
        for one in _names(directory)
        if one.startswith(wanted) and one.endswith(PART_SUFFIX)
    ]
    return sorted(found, key=lambda part: (len(part), part))


def checkpoint_of(path: str, pid: int) -> str:
    """The copy on the disk of what a process has recorded for the trace at `path`."""
    return f"{path}.{pid}{PART_SUFFIX}"


def checkpoints_of(path: str) -> list[str]:
    """The copies of the trace at `path`, of all processes."""
    directory, name = os.path.split(path)
    return [
        os.path.join(directory, one)
        for one in sorted(_names(directory))
        if one.startswith(f"{name}.")
        and one.endswith(PART_SUFFIX)
        and one[len(name) + 1 : -len(PART_SUFFIX)].isdigit()
    ]


def regions_of(path: str) -> list[str]:
    """The regions of the trace at this absolute path, of all processes: those that this user may
    read, and may trust.
    """
    suffix = region_name(path).rpartition("-")[2]
    return [
        os.path.join(directory, name)
        for directory in directories()
        for name in sorted(_names(directory))
        if _is_named(name, suffix) and _is_trusted(os.path.join(directory, name))
    ]


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []


def _is_named(name: str, key: str) -> bool:
    parts = name.split("-")
    return len(parts) == 5 and parts[0] == PREFIX and parts[2] == key


def _is_trusted(path: str) -> bool:
    """A regular file of this user, for nobody else; for root, of anybody."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and stat.S_IMODE(status.st_mode) == 0o600
        and os.getuid() in (0, status.st_uid)
    )


def is_living(region: Region) -> bool | None:
    """Whether the process of a region lives and has it still; None: that cannot be told from here
    (another container).
    """
    pid = int(region["pid"])
    boot = bytes(region["boot"]).rstrip(b"\0").decode("ascii", "replace")
    if boot and boot != _boot_id():
        return False
    if region["pid_namespace"] and region["pid_namespace"] != _pid_namespace():
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    if len(fields) < 20 or fields[0] in (b"Z", b"X") or int(fields[19]) != region["start_time"]:
        return False
    return region.path.endswith(PART_SUFFIX) or _maps(pid, region.path)


def _maps(pid: int, path: str) -> bool:
    """Whether a process has mapped a file: one that has executed another program has not."""
    wanted = os.fsencode(path)
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return any(wanted in line for line in file)
    except OSError:
        return True


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def remove(paths: Iterator[str] | list[str]) -> None:
    """Removes regions or parts that were brought into a trace."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue  # another reader was faster
