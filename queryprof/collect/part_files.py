"""The parts of a process's recording, and the region in which it continues."""

from __future__ import annotations

from queryprof.errors import TraceError
from queryprof.region.identity import region_identity
from queryprof.region.part_names import part_number
from queryprof.region.region import opened_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


def parts_of_process(paths: Iterable[str], identity: Identity) -> tuple[list[str], dict[str, str]]:
    """Return the parts that belong to a process, and why other parts cannot be read.

    Parts of an earlier process with the same id are omitted.
    """
    found: list[str] = []
    unreadable: dict[str, str] = {}
    for path in paths:
        try:
            with opened_region(path) as part:
                if region_identity(part) == identity:
                    found.append(path)
        except TraceError as error:
            unreadable[path] = str(error)
    return found, unreadable


def recording_files(parts: list[str], region: Region) -> list[str]:
    """Return the files of a recording: its parts, and the region in which it continues."""
    return parts if parts_cover_region(parts, region) else [*parts, region.path]


def parts_cover_region(parts: Sequence[str], region: Region) -> bool:
    """Return whether the parts already contain everything in the region, or in an older copy.

    A process that is killed before it empties the region, or before it removes the copy, leaves
    both.
    """
    return any(part_number(part) > int(region["part_ended"]) for part in parts)
