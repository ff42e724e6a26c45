"""What threads used."""

from __future__ import annotations

from collections.abc import Mapping

from queryprof.model import Profile, ThreadUsage


def usage_by_name(profile: Profile) -> Mapping[str, ThreadUsage]:
    """What the threads used, by their names in the report: with the process where there are
    several.
    """
    pids = {process.id: process.pid for process in profile.processes}
    many = len(pids) > 1
    return {
        f"{u.thread.name} (process {pids[u.thread.process_id]})" if many else u.thread.name: u
        for u in sorted(profile.thread_usage, key=lambda u: -(u.user_ns + u.system_ns))
    }


def busy(usage: Mapping[str, ThreadUsage], parts: int) -> tuple[float, Mapping[str, list[float]]]:
    """How busy threads were over the run: the length of a part in ns, and by the names of
    `usage` the CPU time in ns in each of at most `parts` equal parts.
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
