"""What a collapsed trace knows of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Collapsed:
    """What is known of the processes of a collapsed trace beside its sums.

    Attributes:
        count: of processes that are not listed.
        wall_ns: their run times, added up.
        start_unix_ns, end_unix_ns: of the first, and of the last.
        executing: how many processes, listed or not, executed something.
        executing_wall_ns: their run times, added up.
        most_threads: how many threads of one of them did, at the most.
        sums: by a name of Process, what those that are not listed add up to.
    """

    count: int
    wall_ns: int
    start_unix_ns: int
    end_unix_ns: int
    executing: int
    executing_wall_ns: int
    most_threads: int
    sums: Mapping[str, int]
