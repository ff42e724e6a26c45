"""Find the files of regions, their owners, and whether their processes run.

A region is a file in the system's shared memory. A part of a recording is a file next to the trace.
Files of killed processes are found through the trace's path.
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

MAX_NAME_BYTES, SHORT_NAME_BYTES = 180, 120
"""Maximum length in bytes of a name that is used as a prefix, and the length to which longer names
are cut. File systems allow names of 255 bytes.
"""

FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the system's first pid namespace (PROC_PID_INIT_INO of Linux)."""

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def memory_directories() -> list[str]:
    """Return directories that may be in memory, best first."""
    named = [SHARED_MEMORY, os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", "")]
    return [path for path in dict.fromkeys(named) if path.startswith("/") and "\n" not in path]


def temporary_directory() -> str:
    """Return the directory for files that only this process uses."""
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 the files have unique names


def is_removed(path: str) -> bool:
    """Return whether a file was removed, as far as this process can see from its root directory."""
    return not os.path.lexists(path) and os.path.isdir(os.path.dirname(path))


def resolve_directory(path: str) -> str:
    """Return the path of a trace with its directory resolved."""
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(directory), name)


def region_name(path: str) -> str:
    """Return the start of region names for the trace at this path: the user, and the path's
    hash.
    """
    return f"{PREFIX}-{os.getuid() if hasattr(os, 'getuid') else 0}-{region_key(path)}"


def region_key(path: str) -> str:
    """Return the hash of a trace's path, which is in the names of its regions."""
    return _hash(os.fsencode(resolve_directory(path)))


def _hash(content: bytes) -> str:
    """Return the FNV-1a hash of a text (http://www.isthe.com/chongo/tech/comp/fnv/)."""
    key = FNV_OFFSET
    for byte in content:
        key = (key ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{key:016x}"


def temporary_stem(path: str) -> str:
    """Return the common start of paths of temporary files next to the file at `path`.

    This is the path itself, or a shorter one if names would become too long.
    """
    directory, name = os.path.split(path)
    content = os.fsencode(name)
    if len(content) > MAX_NAME_BYTES:
        name = f"{os.fsdecode(content[:SHORT_NAME_BYTES])}-{_hash(content)}"
    return os.path.join(directory, name)


def unique_token() -> str:
    """Return a unique part of a name: process ids can be equal in different containers."""
    return os.urandom(6).hex()


def checkpoint_path(path: str, pid: int) -> str:
    """Return a path for a copy of a process's region, for the trace at `path`.

    The path is unique to the process and to the program that it executes.
    """
    return f"{temporary_stem(path)}.{pid}.{unique_token()}{PART_SUFFIX}"


def checkpoints_of_trace(path: str) -> list[str]:
    """Return the copies of regions for the trace at `path`, from all processes."""
    directory, name = os.path.split(temporary_stem(path))
    return [
        os.path.join(directory, one)
        for one in sorted(list_names(directory))
        if one.startswith(f"{name}.")
        and one.endswith(PART_SUFFIX)
        and _is_checkpoint(one[len(name) + 1 : -len(PART_SUFFIX)])
        and _is_trusted(os.path.join(directory, one))
    ]


def checkpoints_in(directory: str) -> list[str]:
    """Return the copies of regions in a directory, of all traces."""
    found = []
    for name in sorted(list_names(directory)):
        middle = ".".join(name.removesuffix(PART_SUFFIX).rsplit(".", 2)[-2:])
        path = os.path.join(directory, name)
        if name.endswith(PART_SUFFIX) and _is_checkpoint(middle) and _is_trusted(path):
            found.append(path)
    return found


def _is_checkpoint(middle: str) -> bool:
    pid, _, token = middle.partition(".")
    return pid.isdecimal() and bool(token) and all(digit in "0123456789abcdef" for digit in token)


def regions_of_trace(path: str) -> list[str]:
    """Return the readable and trusted regions of the trace at this path, of all processes."""
    return list(readable_regions(region_key(path)))


def region_keys() -> frozenset[str]:
    """Return the hashes of the paths of all traces with regions, trusted or not."""
    names = [name for directory in memory_directories() for name in list_names(directory)]
    return frozenset(name.split("-")[2] for name in names if _is_region_name(name, "", None))


def readable_regions(key: str = "", pids: Container[int] | None = None) -> Iterator[str]:
    """Yield the paths of the trusted regions of one trace, or of all traces.

    Args:
        key: the hash of the trace's path; "" for all traces.
        pids: only processes with these ids, which are in the file names.
    """
    for directory in memory_directories():
        for name in sorted(list_names(directory)):
            path = os.path.join(directory, name)
            if _is_region_name(name, key, pids) and _is_trusted(path):
                yield path


def list_names(directory: str) -> list[str]:
    """Return the names in a directory; empty if unreadable."""
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []


def _is_region_name(name: str, key: str, pids: Container[int] | None) -> bool:
    parts = name.split("-")
    if len(parts) != 5:
        return False
    prefix, _, its_key, pid, _ = parts
    is_chosen = pids is None or (pid.isdecimal() and int(pid) in pids)
    return prefix == PREFIX and key in ("", its_key) and is_chosen


def _is_trusted(path: str) -> bool:
    """Return whether a file is regular, private, and owned by this user; for root, by any user."""
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
    """Return whether the process of a region runs and still has the region.

    None means unknown: the process is in another container.
    """
    pid = int(region["pid"])
    boot = bytes(region["boot"]).rstrip(b"\0").decode("ascii", "replace")
    if boot and boot != boot_id():
        return False
    if region["pid_namespace"] and region["pid_namespace"] != _pid_namespace():
        return _lives_in_other_namespace(region)
    started = process_start_ticks(pid)
    if started not in (int(region["start_time"]), -1):
        if not started or _is_in_our_time_namespace(pid):
            return False
        # Start times differ in another time namespace (time_namespaces(7)). Two processes may have
        # this id, so look for the process that has mapped the memory.
        return None if region.path.endswith(PART_SUFFIX) else _has_mapped(pid, region)
    return region.path.endswith(PART_SUFFIX) or _has_mapped(pid, region)


def _is_in_our_time_namespace(pid: int) -> bool:
    """Return whether a process is in our time namespace."""
    try:
        return os.stat(f"/proc/{pid}/ns/time").st_ino == os.stat("/proc/self/ns/time").st_ino
    except OSError:
        return True


def process_start_ticks(pid: int) -> int:
    """Return when a process started, in ticks since the system started; 0 if not running.

    -1 means unknown. The time is field 22 of proc_pid_stat(5).
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
    """Return whether a process runs but is hidden (hidepid of proc(5))."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def is_process_living(pid: int, started: int) -> bool:
    """Return whether a process with this start time still runs; True if unknown."""
    return process_start_ticks(pid) in (started, -1)


def _lives_in_other_namespace(region: Region) -> bool | None:
    """Return whether a process of another pid namespace runs. The first namespace sees all
    processes.
    """
    if _pid_namespace() != FIRST_PID_NAMESPACE:
        return None
    for pid in filter(str.isdigit, list_names("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/pid").st_ino != region["pid_namespace"]:
                continue
        except FileNotFoundError:
            continue  # the process has just ended
        except OSError:
            return None
        if is_process_living(int(pid), int(region["start_time"])):
            return True
    return False


def process_id_scope() -> str:
    """Return the scope in which process ids are unique: host, boot, pid namespace."""
    return f"{os.uname().nodename} {boot_id()} {_pid_namespace()}"


def is_in_any_environment(directory: str) -> bool:
    """Return whether a running process has the directory's path in its environment.

    The path is at the end of a variable (QUERYPROF_RUNNER). The environments of other users cannot
    be read and do not count.
    """
    wanted = b":" + os.fsencode(directory) + b"/\0"
    for pid in filter(str.isdigit, list_names("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read() + b"\0":
                    return True
        except OSError:
            continue
    return False


def _has_mapped(pid: int, region: Region) -> bool:
    """Return whether a process has mapped a region's file, which may have another name there.

    After executing another program, a process no longer has the mapping.
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
    """Return the id of this boot (/proc/sys/kernel/random/boot_id); "" if unknown."""
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
    """Return whether another process may be recording to the trace at `path`."""
    regions = regions_of_trace(path)
    if not regions:
        return False
    from queryprof.region.region import opened_region  # takes a third of the time of `install`

    for found in regions:
        try:
            with opened_region(found) as region:
                if region["pid"] != os.getpid() and may_record_to(region, path):
                    return True
        except (TraceError, ValueError):
            continue
    return False


def may_record_to(region: Region, path: str) -> bool:
    """Return whether this region belongs to the trace at `path`, and its process may be running."""
    from queryprof.region.identity import region_trace_path

    return (
        resolve_directory(region_trace_path(region)) == resolve_directory(path)
        and is_living(region) is not False
    )


def remove_files(paths: Iterator[str] | list[str]) -> None:
    """Remove regions or parts that were saved to a trace."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue  # another reader has removed it
