"""Read and write the metadata in the footer of a fleet's Parquet file.

    queryprof.schema     version of the tables
    queryprof.version    version of queryprof that wrote the file
    queryprof.service    service of the rows
    queryprof.processes  JSON list of the process windows in the file, each [host, process id,
                         start, start of the window, end of the window], in ns since 1970
    queryprof.lost       JSON object, if earlier windows were lost. "processes": a list of [host,
                         process id, start, number of windows removed to keep only the latest];
                         "files": number of windows dropped while a store was away
    queryprof.sources    JSON list, in a combined file of a day: the names of its sources

Names in the metadata are only compared, and never used as paths, because they are not trusted.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from queryprof.fleet.schema import SCHEMA
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA_KEY, VERSION_KEY, SERVICE_KEY, PROCESSES_KEY, LOST_KEY, SOURCES_KEY = (
    f"queryprof.{name}".encode()
    for name in ("schema", "version", "service", "processes", "lost", "sources")
)
MAX_LOST_WINDOWS = 10**12
"""Larger numbers of lost windows are ignored as invalid."""


class Lost(NamedTuple):
    """The windows that are missing in the fleet's files.

    Attributes:
        processes: the number of windows that each process removed, by host, process id and start.
        files: the number of windows that were dropped before they could be sent.
    """

    processes: Mapping[tuple[str, int, int], int] = {}
    files: int = 0


class Footer(NamedTuple):
    """A file's metadata.

    Attributes:
        processes: the process windows in the file, each as JSON text.
        sources: the names of a combined file's sources; None for other files.
    """

    service: str
    processes: tuple[str, ...]
    lost: Lost = Lost()
    sources: frozenset[str] | None = None

    def facts(self) -> dict[bytes, bytes]:
        """Return the metadata as the key-value pairs of a Parquet file."""
        found = {
            SCHEMA_KEY: str(SCHEMA).encode(),
            VERSION_KEY: __version__.encode(),
            SERVICE_KEY: self.service.encode("utf-8", "backslashreplace"),
            PROCESSES_KEY: f"[{', '.join(self.processes)}]".encode(),
        }
        if any(self.lost):
            lost = [[*process, count] for process, count in sorted(self.lost.processes.items())]
            found[LOST_KEY] = json.dumps({"processes": lost, "files": self.lost.files}).encode()
        if self.sources is not None:
            found[SOURCES_KEY] = json.dumps(sorted(self.sources)).encode()
        return found


def footer_in(facts: Mapping[bytes, bytes]) -> Footer:
    """Parse the metadata. Invalid values are ignored."""
    sources = _json_or_none(facts.get(SOURCES_KEY))
    return Footer(
        facts.get(SERVICE_KEY, b"").decode("utf-8", "replace"),
        tuple(sorted({json.dumps(one) for one in _list(_json_or_none(facts.get(PROCESSES_KEY)))})),
        _lost(_json_or_none(facts.get(LOST_KEY))),
        None if sources is None else frozenset(one for one in _list(sources) if type(one) is str),
    )


def merge_lost(several: Iterable[Lost]) -> Lost:
    """Merge the lost windows of files that become one."""
    processes: dict[tuple[str, int, int], int] = {}
    files = 0
    for lost in several:
        files += lost.files
        for process, count in lost.processes.items():
            processes[process] = max(count, processes.get(process, 0))
    return Lost(processes, files)


def _lost(found: Any) -> Lost:
    if not isinstance(found, dict):
        return Lost()
    processes: dict[tuple[str, int, int], int] = {}
    for one in _list(found.get("processes")):
        if isinstance(one, list) and len(one) == 4 and _is_count(one[3]):
            processes[str(one[0]), int(_number(one[1])), int(_number(one[2]))] = one[3]
    files = found.get("files")
    return Lost(processes, int(files or 0) if _is_count(files) else 0)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_LOST_WINDOWS


def _number(value: Any) -> int:
    return value if type(value) is int else 0


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _json_or_none(content: bytes | None) -> Any:
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None
