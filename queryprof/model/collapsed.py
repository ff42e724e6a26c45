"""Figures of a collapsed trace, which sums over processes that it does not list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CollapsedFigures:
    """Figures of the processes in a collapsed trace.

    Attributes:
        count: number of unlisted processes.
        wall_ns: sum of the unlisted processes' run times.
        start_unix_ns, end_unix_ns: start of the first unlisted process, and end of the last.
        executing: number of processes that executed statements, including listed processes.
        executing_wall_ns: sum of the run times of the `executing` processes.
        most_threads: largest number of threads that executed statements in one process.
        sums: sums over the unlisted processes, by attribute name of Process.
    """

    count: int
    wall_ns: int
    start_unix_ns: int
    end_unix_ns: int
    executing: int
    executing_wall_ns: int
    most_threads: int
    sums: Mapping[str, int]
