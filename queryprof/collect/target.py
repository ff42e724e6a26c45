"""Where a process's trace goes to."""

from __future__ import annotations

from queryprof.core.own_imports import own_imports
from queryprof.core.wall_clock import unix_ns
from queryprof.region.region_files import directories, regions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REGIONS_LEFT, MOST_REGIONS = 16, 256
"""Regions of a family: with more than the first number, a process that begins moves those of ended
processes to the disk; with more than the second, it makes none."""


class Target:
    """The target of this process's trace.

    Attributes:
        path: the file.
        child_path: returns the path of the trace of a forked child; None: it has none.
        family: the path by which the regions of this process and of its children are found: that of
            the first process's trace (None: this one's), or the directory of the runner.
        even_if_empty: whether a file is written when nothing was recorded.
        is_collected: whether `queryprof run` takes the region when the process has ended.
        checkpoint: the file that copies of this process's region go to.
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

    def places(self) -> list[str]:
        """The directories for a region: a process of a family that has left many regions moves some
        of them to the disk, and has no region when that is not enough.
        """
        left = [] if self.is_collected else regions_of(self.family)
        if len(left) > REGIONS_LEFT:
            with own_imports():
                from queryprof.collect.recovery import put_aside

                put_aside(left, self.family)
        return directories() if len(left) <= MOST_REGIONS else []
