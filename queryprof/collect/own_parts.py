"""The parts of this process's recording: files with what it had recorded before the present one."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain
from queryprof.errors import SessionError
from queryprof.region.part_names import part_path, parts_prefix, parts_with
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
        self._readers: list[int] = []  # for each, the number of the last part before its first
        self._removed = 0  # the number up to which all are removed
        self.identity: Identity | None = None
        self._reported: set[str] = set()  # why some are left out

    def begin(self, path: str) -> None:
        """From now on they are beside this path."""
        self.path, self.prefix = path, parts_prefix(path)
        self.are_windows = False
        self._removed = 0

    def files(self) -> list[str]:
        """Their paths, the oldest first. Lists the directory and opens each of them."""
        return self._sound(parts_with(self.prefix) if self.prefix else [])

    def _sound(self, paths: list[str]) -> list[str]:
        if not paths or self.identity is None:
            return []
        with own_imports():
            from queryprof.collect.part_files import of_process

            parts, unsound = of_process(paths, self.identity)
        for reason in set(unsound.values()) - self._reported:
            self._reported.add(reason)
            complain(f"left out: {reason}")
        return parts

    @property
    def is_read(self) -> bool:
        """Whether a block or a report is reading them: they stay for as long."""
        return bool(self._readers)

    def forget_readers(self) -> None:
        """In a forked child."""
        self._readers.clear()

    def begin_reading(self) -> int:
        """Keeps those that are written from now on, until `end_reading` is called with the number
        that this returns: that of the last part.
        """
        number = _core.last_part()
        self._readers.append(number)
        _core.hold_windows(True)
        return number

    def end_reading(self, number: int) -> None:
        """Ends that."""
        if number in self._readers:  # else this process was forked since
            self._readers.remove(number)
        _core.hold_windows(self.is_read)

    def after(self, number: int) -> list[str]:
        """Those after this one. Raises SessionError: one of them is gone."""
        wanted = [part_path(self.prefix, n) for n in range(number + 1, _core.last_part() + 1)]
        found = self._sound(wanted)
        if len(found) < len(wanted):
            raise SessionError("parts of it were taken away in the meantime")
        return found

    def remove_unread(self) -> None:
        """Removes those that no reader needs, in the time that the removed ones take."""
        last = min(self._readers, default=_core.last_part())
        remove([part_path(self.prefix, n) for n in range(self._removed + 1, last + 1)])
        self._removed = max(self._removed, last)

    def remove(self) -> None:
        """Removes them, unless they are being read, or are the trace itself."""
        if not self.is_read and not self.are_windows:
            remove(self.files())
