"""The parts of this process's recording: files with what it had recorded before the present one."""

from __future__ import annotations

import os

from queryprof.core import _core
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain
from queryprof.errors import SessionError
from queryprof.region.part_names import part_path, parts_prefix, parts_with
from queryprof.region.region_files import remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.processes import Identity

    Place = tuple[int, int]
    """Of a part: how many places were before, and its number there."""


class OwnParts:
    """The parts of this process.

    Their place changes when a recording that blocks began goes on to a trace: those at the places
    before are kept until nobody needs them.

    Attributes:
        path: that their names begin with; prefix: that and this process's token.
        are_windows: they are the trace itself, and stay when the recording has ended.
        identity: of the process; None: it is not recorded.
    """

    def __init__(self) -> None:
        self.path = self.prefix = ""
        self.are_windows = False
        self._before: list[tuple[str, int]] = []  # places before: the prefix, the last number there
        self._readers: list[Place] = []  # for each, the last part before its first
        self._removed: Place = (0, 0)  # up to which all are removed
        self.identity: Identity | None = None
        self._reported: set[str] = set()  # why some are left out

    def begin(self, path: str) -> None:
        """From now on they are beside this path."""
        if self.prefix:
            self._before.append((self.prefix, _core.last_part()))
        self.path, self.prefix = path, parts_prefix(path)
        self.are_windows = False

    def renew(self) -> None:
        """Another recording, or a forked child, begins: it has no parts yet."""
        self.path = self.prefix = ""
        self._before.clear()
        self._removed = (0, 0)

    def files(self) -> list[str]:
        """Their paths, the oldest first. Lists the directory and opens each of them."""
        now = parts_with(self.prefix) if self.prefix else []
        return self._sound([*self._earlier(), *now])

    def _earlier(self) -> list[str]:
        return [
            part_path(prefix, number)
            for prefix, last in self._before
            for number in range(1, last + 1)
            if os.path.lexists(part_path(prefix, number))
        ]

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
        """In a forked child, whose parts are other ones."""
        self._readers.clear()
        self.renew()

    def begin_reading(self) -> Place:
        """Keeps those that are written from now on, until `end_reading` is called with the place
        that this returns: that of the last part.
        """
        place = self._last()
        self._readers.append(place)
        _core.hold_windows(True)
        return place

    def end_reading(self, place: Place) -> None:
        """Ends that."""
        if place in self._readers:  # else this process was forked since
            self._readers.remove(place)
        _core.hold_windows(self.is_read)

    def _last(self) -> Place:
        return len(self._before), _core.last_part()

    def _between(self, first: Place, last: Place) -> list[str]:
        """The paths of those after a place, up to another one."""
        prefixes = [*self._before, (self.prefix, _core.last_part())]
        found = []
        for at in range(first[0], last[0] + 1):
            prefix, count = prefixes[at]
            begin = first[1] + 1 if at == first[0] else 1
            end = last[1] if at == last[0] else count
            found += [part_path(prefix, number) for number in range(begin, end + 1)]
        return found

    def after(self, place: Place) -> list[str]:
        """Those after this one. Raises SessionError: one of them is gone."""
        wanted = self._between(place, self._last())
        found = self._sound(wanted)
        if len(found) < len(wanted):
            raise SessionError("parts of it were taken away in the meantime")
        return found

    def remove_unread(self) -> None:
        """Removes those that no reader needs, in the time that the removed ones take."""
        last = min(self._readers, default=self._last())
        remove(self._between(self._removed, last))
        self._removed = max(self._removed, last)

    def remove(self) -> None:
        """Removes them, unless they are being read. Those that are the trace itself stay."""
        if not self.is_read:
            remove(self._earlier() if self.are_windows else self.files())
