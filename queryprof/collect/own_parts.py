"""The parts of this process's recording: files with what it had recorded before the present one."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain
from queryprof.errors import SessionError
from queryprof.region.part_names import part_number, parts_prefix, parts_with
from queryprof.region.region_files import remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.processes import Identity


class OwnParts:
    """The parts of this process.

    Attributes:
        path: that their names begin with; prefix: that and this process's token.
        are_windows: they are the trace itself, and stay when the recording has ended.
        identity: of the process; None: it is not recorded.
    """

    def __init__(self) -> None:
        self.path = self.prefix = ""
        self.are_windows = False
        self._readers = 0
        self.identity: Identity | None = None
        self._reported: set[str] = set()  # why some are left out

    def begin(self, path: str) -> None:
        """From now on they are beside this path."""
        self.path, self.prefix = path, parts_prefix(path)
        self.are_windows = False

    def files(self) -> list[str]:
        """Their paths, the oldest first."""
        found = parts_with(self.prefix) if self.prefix else []
        if not found or self.identity is None:
            return []
        with own_imports():
            from queryprof.collect.part_files import of_process

            parts, unsound = of_process(found, self.identity)
        for reason in set(unsound.values()) - self._reported:
            self._reported.add(reason)
            complain(f"left out: {reason}")
        return parts

    @property
    def is_read(self) -> bool:
        """Whether a block or a report is reading them: they stay for as long."""
        return self._readers > 0

    def forget_readers(self) -> None:
        """In a forked child."""
        self._readers = 0

    def begin_reading(self) -> None:
        """Keeps them, until `end_reading`."""
        self._readers += 1
        _core.hold_windows(True)

    def end_reading(self) -> None:
        """Lets go of them."""
        self._readers -= 1
        _core.hold_windows(self.is_read)

    def last(self) -> int:
        """The number of the last one; 0: there is none."""
        return max(map(part_number, self.files()), default=0)

    def after(self, number: int) -> list[str]:
        """Those after this one. Raises SessionError: one of them is gone."""
        found = [one for one in self.files() if part_number(one) > number]
        if found and part_number(found[-1]) != number + len(found):
            raise SessionError("parts of it were taken away in the meantime")
        return found

    def remove(self) -> None:
        """Removes them, unless they are being read, or are the trace itself."""
        if not self.is_read and not self.are_windows:
            remove(self.files())
