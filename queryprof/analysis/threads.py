"""The threads' use of CPU time and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from queryprof.model import Profile, Thread, ThreadUsage


def process_namer(profile: Profile) -> Callable[[Thread], str]:
    """Return a function that names a thread's process.

    The name is "process 12". The name is "" if there is one process, or if the thread belongs to
    all processes. If several processes have the same id, as in containers, the name includes the
    host. If the host is also the same, the name includes a number.
    """
    if profile.process_count == 1:
        return lambda _: ""
    pids = Counter(one.pid for one in profile.processes)
    met: Counter[tuple[int, str]] = Counter()
    names = {}
    for one in profile.processes:
        met[one.pid, one.host] += 1
        number = met[one.pid, one.host]
        names[one.id] = f"process {one.pid}" + (
            f" of {one.host}{f', {number}' if number > 1 else ''}" if pids[one.pid] > 1 else ""
        )
    return lambda of: names.get(of.process_id, "")


def thread_and_process_name(name: str, process: str) -> str:
    """Return the thread's name, followed by the process name in parentheses unless it is ""."""
    return f"{name} ({process})" if process else name


def usage_by_name(profile: Profile) -> Mapping[str, ThreadUsage]:
    """Return the usage of the threads by their names in the report. Names include the process if
    there are several.
    """
    process_of = process_namer(profile)
    return {
        thread_and_process_name(u.thread.name, process_of(u.thread)): u
        for u in sorted(profile.thread_usage, key=lambda u: -(u.user_ns + u.system_ns))
    }


def cpu_time_by_thread(
    usage: Mapping[str, ThreadUsage], parts: int
) -> tuple[float, Mapping[str, list[float]]]:
    """Divide the run into at most `parts` equal parts. Return the length of a part in ns, and each
    thread's CPU time in ns per part, by thread name.
    """
    starts = [i.start_unix_ns for used in usage.values() for i in used.timeline]
    if not starts:
        return 0.0, {name: [] for name in usage}
    width_ns = max(used.width_ns for used in usage.values())
    first, length = min(starts), max(starts) + width_ns - min(starts)
    count = max(1, min(parts, length // width_ns))
    part_ns = length / count
    found = {name: [0.0] * count for name in usage}
    for name, used in usage.items():
        for interval in used.timeline:
            place = min(int((interval.start_unix_ns - first) / part_ns), count - 1)
            found[name][place] += interval.cpu_ns
    return part_ns, found
