"""Threads that execute a statement at the same time: their times include waiting for each other."""

from __future__ import annotations

from queryprof.analysis.findings.groups import Group
from queryprof.analysis.units import duration

MOST_THREADS = 60
"""The most threads with names of their own in a recording, minus a margin."""


def part_alone(group: Group) -> float:
    """Return the part of its time that a statement would take if each execution took the median.
    Among parallel threads, few executions wait for each other, but these wait long. It is 1 for one
    thread.
    """
    return min(1.0, group.alone_ns / max(group.steady_ns, 1)) if group.threads > 1 else 1.0


def said_of_threads(group: Group) -> str:
    if group.threads < 2:
        return ""
    number = f"{group.threads} threads" if group.threads < MOST_THREADS else "Many threads"
    return (
        f"{number} run it: their waits for each other (the interpreter's lock) are not counted."
        f" If each execution took the median, the total would be {duration(group.alone_ns)}"
        f" instead of {duration(group.steady_ns)}."
    )
