"""Where the regions of a recording are, whose they are, and whether their processes live.

A region is a file in the system's shared memory; a part of a recording is a file beside the trace.
What a killed process leaves is found by the trace's path.
"""

from __future__ import annotations

import os
import stat

from queryprof.errors import TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from queryprof.region.region import Region

SHARED_MEMORY = "/dev/shm"  # noqa: S108 files there have unique names and one owner
PREFIX = "queryprof"
PART_SUFFIX = ".live"

LONGEST_NAME, SHORT_NAME = 180, 120
"""Bytes of a name that others begin with, and of the part of a longer one that they begin with: a
file system has names of 255 bytes."""

FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the pid namespace in which the system began (PROC_PID_INIT_INO of Linux)."""

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def directories() -> list[str]:
    """Directories that may be in memory, best first."""
    named = [SHARED_MEMORY, os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", "")]
    return [path for path in dict.fromkeys(named) if path.startswith("/") and "\n" not in path]


def temporary_directory() -> str:
    """Where files are that only this process knows."""
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 the files have unique names


def is_removed(path: str) -> bool:
    """Whether a file was removed, as far as this process can see from its root."""
    return not os.path.lexists(path) and os.path.isdir(os.path.dirname(path))


def resolved(path: str) -> str:
    """The path of a trace with its directory resolved."""
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(directory), name)


def region_name(path: str) -> str:
    """What the names of the regions of the trace at this path begin with, up to the process: the
    user, and the path's hash.
    """
    return f"{PREFIX}-{os.getuid() if hasattr(os, 'getuid') else 0}-{region_key(path)}"


def region_key(path: str) -> str:
    """The hash of the path of a trace, in the names of its regions."""
    return _hash(os.fsencode(resolved(path)))


def _hash(content: bytes) -> str:
    """FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/)."""
    key = FNV_OFFSET
    for byte in content:
        key = (key ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{key:016x}"


def nearby(path: str) -> str:
    """What the paths of files that are kept beside the file at `path` for a while begin with: the
    path itself, or a shorter one if names that begin with its name would be too long.
    """
    directory, name = os.path.split(path)
    content = os.fsencode(name)
    if len(content) > LONGEST_NAME:
        name = f"{os.fsdecode(content[:SHORT_NAME])}-{_hash(content)}"
    return os.path.join(directory, name)


def token() -> str:
    """What makes a name unique: ids of processes are equal in different containers."""
    return os.urandom(6).hex()


def checkpoint_of(path: str, pid: int) -> str:
    """A path for the copy on the disk of a process's region for the trace at `path`. It is unique
    to the process and to the program that this executes.
    """
    return f"{nearby(path)}.{pid}.{token()}{PART_SUFFIX}"


def checkpoints_of(path: str) -> list[str]:
    """The copies of the trace at `path`, of all processes."""
    directory, name = os.path.split(nearby(path))
    return [
        os.path.join(directory, one)
        for one in sorted(names_in(directory))
        if one.startswith(f"{name}.")
        and one.endswith(PART_SUFFIX)
        and _is_checkpoint(one[len(name) + 1 : -len(PART_SUFFIX)])
        and _is_trusted(os.path.join(directory, one))
    ]


def copies_in(directory: str) -> list[str]:
    """The copies of regions in a directory, of all traces."""
    found = []
    for name in sorted(names_in(directory)):
        middle = ".".join(name.removesuffix(PART_SUFFIX).rsplit(".", 2)[-2:])
        path = os.path.join(directory, name)
        if name.endswith(PART_SUFFIX) and _is_checkpoint(middle) and _is_trusted(path):
            found.append(path)
    return found


def _is_checkpoint(middle: str) -> bool:
    pid, _, token = middle.partition(".")
    return pid.isdecimal() and bool(token) and all(digit in "0123456789abcdef" for digit in token)


def regions_of(path: str) -> list[str]:
    """The regions of the trace at this path, of all processes: those readable and trusted."""
    return list(regions(region_key(path)))


def region_keys() -> frozenset[str]:
    """The hashes of the paths of all traces that have regions, trusted or not."""
    names = [name for directory in directories() for name in names_in(directory)]
    return frozenset(name.split("-")[2] for name in names if _is_named(name, "", None))


def regions(key: str = "", pids: Container[int] | None = None) -> Iterator[str]:
    """The regions whose trace's path has this hash, or of all traces: those readable and trusted.

    Args:
        pids: of processes with these ids alone, which are in the files' names.
    """
    for directory in directories():
        for name in sorted(names_in(directory)):
            path = os.path.join(directory, name)
            if _is_named(name, key, pids) and _is_trusted(path):
                yield path


def names_in(directory: str) -> list[str]:
    """The names in a directory; none: it cannot be read."""
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []


def _is_named(name: str, key: str, pids: Container[int] | None) -> bool:
    parts = name.split("-")
    if len(parts) != 5:
        return False
    prefix, _, its_key, pid, _ = parts
    is_chosen = pids is None or (pid.isdecimal() and int(pid) in pids)
    return prefix == PREFIX and key in ("", its_key) and is_chosen


def _is_trusted(path: str) -> bool:
    """Whether it is a regular file of this user that no other may read; for root, of any user."""
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
    """Whether the process of a region lives and still has it; None: unknown (another container)."""
    pid = int(region["pid"])
    boot = bytes(region["boot"]).rstrip(b"\0").decode("ascii", "replace")
    if boot and boot != boot_id():
        return False
    if region["pid_namespace"] and region["pid_namespace"] != _pid_namespace():
        return _lives_elsewhere(region)
    started = started_at(pid)
    if started not in (int(region["start_time"]), -1):
        if not started or _has_our_time(pid):
            return False
        # Its times are others (time_namespaces(7)): of two with one id, the memory is its owner's.
        return None if region.path.endswith(PART_SUFFIX) else _maps(pid, region)
    return region.path.endswith(PART_SUFFIX) or _maps(pid, region)


def _has_our_time(pid: int) -> bool:
    """Whether a process's times begin where ours do."""
    try:
        return os.stat(f"/proc/{pid}/ns/time").st_ino == os.stat("/proc/self/ns/time").st_ino
    except OSError:
        return True


def started_at(pid: int) -> int:
    """When a process started, in ticks since the system started (field 22 of proc_pid_stat(5)); 0:
    it does not run; -1: unknown.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return -1 if _is_hidden(pid) else 0
    except OSError:
        return -1
    return 0 if len(fields) < 20 or fields[0] in (b"Z", b"X") else int(fields[19])


def _is_hidden(pid: int) -> bool:
    """Whether a process runs that is not shown (hidepid of proc(5))."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def is_process_living(pid: int, started: int) -> bool:
    """Whether a process of this pid namespace that started then still runs; if unknown, True."""
    return started_at(pid) in (started, -1)


def _lives_elsewhere(region: Region) -> bool | None:
    """Whether a process of another pid namespace lives: in the first namespace all are visible."""
    if _pid_namespace() != FIRST_PID_NAMESPACE:
        return None
    for pid in filter(str.isdigit, names_in("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/pid").st_ino != region["pid_namespace"]:
                continue
        except FileNotFoundError:
            continue  # it has ended just now
        except OSError:
            return None
        if is_process_living(int(pid), int(region["start_time"])):
            return True
    return False


def place_of_process() -> str:
    """The place in which process ids are unique: host, start of the system, pid namespace."""
    return f"{os.uname().nodename} {boot_id()} {_pid_namespace()}"


def is_in_an_environment(directory: str) -> bool:
    """Whether a running process has the directory's path at the end of a variable of its
    environment (QUERYPROF_RUNNER). Those of other users cannot be read and do not count.
    """
    wanted = b":" + os.fsencode(directory) + b"/\0"
    for pid in filter(str.isdigit, names_in("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read() + b"\0":
                    return True
        except OSError:
            continue
    return False


def _maps(pid: int, region: Region) -> bool:
    """Whether a process has mapped a region's file, which has another name there. It no longer has
    after it has executed another program.
    """
    status = os.fstat(region.file)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    wanted = f" {device} {status.st_ino} ".encode("ascii")
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return any(wanted in line for line in file)
    except OSError:
        return True


def boot_id() -> str:
    """Of this start of the system (/proc/sys/kernel/random/boot_id); "": unknown."""
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


def has_living_region(path: str) -> bool:
    """Whether another process that may live records for the trace at `path`."""
    from queryprof.region.region import opened_region

    for found in regions_of(path):
        try:
            with opened_region(found) as region:
                if region["pid"] != os.getpid() and records_to(region, path):
                    return True
        except (TraceError, ValueError):
            continue
    return False


def records_to(region: Region, path: str) -> bool:
    """Whether a process that may live records in this region for the trace at `path`."""
    from queryprof.region.identity import trace_of

    return resolved(trace_of(region)) == resolved(path) and is_living(region) is not False


def remove(paths: Iterator[str] | list[str]) -> None:
    """Removes regions or parts that were brought into a trace."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue  # another reader was faster
