"""Choose where to write a process's trace."""

from __future__ import annotations

from queryprof.core.own_imports import own_imports
from queryprof.core.wall_clock import unix_ns
from queryprof.region.region_files import memory_directories, regions_of_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REGIONS_LEFT, MAX_REGIONS = 16, 256
"""Maximum numbers of regions in a family. Above REGIONS_LEFT, a starting process moves the regions
of ended processes to the disk. Above MAX_REGIONS, it creates no region.
"""


class TraceTarget:
    """The destination of this process's trace.

    Attributes:
        path: the file.
        child_path: returns the path of the trace of a forked child; None if a child has no trace.
        family: identifies the regions of this process and of its children. This is the path of the
            first process's trace (None: this one's), or the directory of the runner.
        even_if_empty: whether to write a file when nothing was recorded.
        is_collected: whether `queryprof run` takes the region when the process has ended.
        checkpoint: the file for copies of this process's region.
    """

    __slots__ = (
        "checkpoint",
        "child_path",
        "even_if_empty",
        "family",
        "is_collected",
        "path",
        "since_unix_ns",
    )

    def __init__(
        self,
        path: str,
        child_path: Callable[[], str] | None = None,
        family: str | None = None,
        *,
        even_if_empty: bool = True,
        is_collected: bool = False,
    ) -> None:
        self.path, self.family, self.child_path = path, family or path, child_path
        self.even_if_empty, self.is_collected = even_if_empty, is_collected
        self.since_unix_ns = unix_ns()
        self.checkpoint = ""

    def region_directories(self) -> list[str]:
        """Return the directories where a region may be created; empty if the family has too many.

        If the family has many regions, some are moved to the disk first.
        """
        left = [] if self.is_collected else regions_of_trace(self.family)
        if len(left) > REGIONS_LEFT:
            with own_imports():
                from queryprof.collect.recovery import move_to_disk

                move_to_disk(left, self.family)
        return memory_directories() if len(left) <= MAX_REGIONS else []
