"""The parts of this process's recording: files with the older data of the recording."""

from __future__ import annotations

import os

from queryprof.core import _core
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain
from queryprof.errors import SessionError
from queryprof.region.part_names import part_path, parts_prefix, parts_with_prefix
from queryprof.region.region_files import remove_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.processes import Identity

    Place = tuple[int, int, int]
    """A part: the number of the recording, how many locations the parts had before, and the part's
    number in its location.
    """


class OwnParts:
    """The parts of this process.

    Parts change their location if blocks began the recording and it then continues to a trace.
    Parts in earlier locations are kept until no reader needs them.

    Attributes:
        path: common start of their names.
        prefix: `path` with this process's token.
        are_windows: whether each part is a window, which stays after the recording.
        identity: the process; None if it is not recorded.
    """

    def __init__(self) -> None:
        self.path = self.prefix = ""
        self.are_windows = False
        # earlier locations: the prefix, and the last part's number there
        self._before: list[tuple[str, int]] = []
        # For each reader, the part before the first part that the reader keeps.
        self._readers: list[Place] = []
        self._recording = 0
        self._removed: Place = (0, 0, 0)  # all parts up to this part are removed
        self.identity: Identity | None = None
        self._reported: set[str] = set()  # reasons for missing parts that were reported

    def begin(self, path: str) -> None:
        """Write the next parts next to this path."""
        if self.prefix:
            self._before.append((self.prefix, _core.last_part_number()))
        self.path, self.prefix = path, parts_prefix(path)
        self.are_windows = False

    def forget_all(self) -> None:
        """Forget all parts, because another recording or a forked child begins. Remove the parts
        that were kept only for readers.
        """
        if self.prefix and self.has_readers and not self.are_windows:
            remove_files([*self._files_in_earlier_places(), *parts_with_prefix(self.prefix)])
        self.path = self.prefix = ""
        self._before.clear()
        self._recording += 1
        self._removed = (self._recording, 0, 0)

    def files(self) -> list[str]:
        """Return the paths of the parts, oldest first. Lists the directory and opens each part."""
        now = parts_with_prefix(self.prefix) if self.prefix else []
        return self._readable_parts([*self._files_in_earlier_places(), *now])

    def _files_in_earlier_places(self) -> list[str]:
        return [
            part_path(prefix, number)
            for prefix, last in self._before
            for number in range(1, last + 1)
            if os.path.lexists(part_path(prefix, number))
        ]

    def _readable_parts(self, paths: list[str]) -> list[str]:
        if not paths or self.identity is None:
            return []
        with own_imports():
            from queryprof.collect.part_files import parts_of_process

            parts, unsound = parts_of_process(paths, self.identity)
        for reason in set(unsound.values()) - self._reported:
            self._reported.add(reason)
            complain(f"skipped: {reason}")
        return parts

    @property
    def has_readers(self) -> bool:
        """Whether a block or a report is reading parts, which then must stay."""
        return bool(self._readers)

    def forget_readers(self) -> None:
        """Forget the parent's readers and parts in a forked child."""
        self._readers.clear()
        self.forget_all()

    def begin_reading(self) -> Place:
        """Keep the parts that are written from now on, until `end_reading`.

        Returns the last existing part; pass it to `end_reading`.
        """
        place = self._last_place()
        self._readers.append(place)
        _core.prevent_window_removal(True)
        return place

    def end_reading(self, place: Place) -> None:
        """Release the parts that `begin_reading` kept."""
        if place in self._readers:  # missing if this process was forked since
            self._readers.remove(place)
        _core.prevent_window_removal(self.has_readers)

    def _last_place(self) -> Place:
        return self._recording, len(self._before), _core.last_part_number()

    def _paths_between(self, first: Place, last: Place) -> list[str]:
        """Return the paths of this recording's parts after `first`, up to and including `last`."""
        first = max(first, (self._recording, 0, 0))
        prefixes = [*self._before, (self.prefix, _core.last_part_number())]
        found = []
        for at in range(first[1], last[1] + 1) if last >= first else ():
            prefix, count = prefixes[at]
            begin = first[2] + 1 if at == first[1] else 1
            end = last[2] if at == last[1] else count
            found += [part_path(prefix, number) for number in range(begin, end + 1)]
        return found

    def paths_after(self, place: Place) -> list[str]:
        """Return the paths of the parts after `place`. Raises SessionError if one was removed."""
        wanted = self._paths_between(place, self._last_place())
        found = self._readable_parts(wanted)
        if len(found) < len(wanted):
            raise SessionError("parts of the recording were removed in the meantime")
        return found

    def remove_unread(self) -> None:
        """Remove the parts that no reader needs. Takes time proportional to the removed
        parts only.
        """
        last = min(self._readers, default=self._last_place())
        remove_files(self._paths_between(self._removed, last))
        self._removed = max(self._removed, last)

    def remove(self) -> None:
        """Remove all parts, unless they are being read or are the trace itself."""
        if not self.has_readers:
            remove_files(self._files_in_earlier_places() if self.are_windows else self.files())
