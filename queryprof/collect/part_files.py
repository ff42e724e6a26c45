"""The parts of a process's recording, beside the region in which it goes on."""

from __future__ import annotations

from queryprof.errors import TraceError
from queryprof.region.identity import identity_of
from queryprof.region.part_names import part_number
from queryprof.region.region import opened_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


def of_process(paths: Iterable[str], identity: Identity) -> tuple[list[str], dict[str, str]]:
    """Which of these parts are of a process, and which cannot be read, and why. The others are of
    an earlier process with its id.
    """
    its: list[str] = []
    unsound: dict[str, str] = {}
    for path in paths:
        try:
            with opened_region(path) as part:
                if identity_of(part) == identity:
                    its.append(path)
        except TraceError as error:
            unsound[path] = str(error)
    return its, unsound


def files_of(parts: list[str], region: Region) -> list[str]:
    """The files of a recording: its parts, and the region in which it goes on."""
    return parts if has_all(parts, region) else [*parts, region.path]


def has_all(parts: Sequence[str], region: Region) -> bool:
    """Whether what a region holds, or the older copy of one, is in a part, too: its process was
    killed before it had emptied it, or removed the copy.
    """
    return any(part_number(part) > int(region["part_ended"]) for part in parts)
