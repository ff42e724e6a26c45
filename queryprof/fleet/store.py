"""The Parquet files of a fleet: which there are, and which can be read.

What stands in a footer is data: it is compared, and never followed as a path.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.parquet_files import PROCESSES_KEY, SCHEMA_KEY
from queryprof.fleet.schema import FLEET_TABLES, SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ENDING = ".parquet"


@dataclass(frozen=True, slots=True)
class Store:
    """The files of a fleet.

    Attributes:
        files: their paths, by table.
        left_out: why others are left out, a line each.
        repeated: windows of processes that are in more than one file: they count with each.
    """

    files: Mapping[str, list[str]]
    left_out: tuple[str, ...]
    repeated: int


def read_store(directories: Iterable[str]) -> Store:
    """The files below directories.

    Raises:
        TraceError: there are none.
    """
    files: dict[str, list[str]] = {table.name: [] for table in FLEET_TABLES}
    left_out: list[str] = []
    windows: Counter[str] = Counter()
    named = list(directories)
    for directory in named:
        for table in FLEET_TABLES:
            for path in _files_below(os.path.join(directory, table.name)):
                try:
                    facts = pq.read_schema(path).metadata or {}
                except (OSError, pa.ArrowException) as error:
                    left_out.append(f"{path}: is no whole Parquet file: {_line(error)}")
                    continue
                version = facts.get(SCHEMA_KEY, b"").decode("ascii", "replace")
                if version != str(SCHEMA):
                    what = f"has version {version} of the schema" if version else "is none of ours"
                    left_out.append(f"{path}: {what}; this queryprof reads version {SCHEMA}")
                    continue
                files[table.name].append(path)
                if table.name == "aggregate":
                    windows.update(_windows_in(facts))
    if not any(files.values()):
        why = f"; left out: {left_out[0]}" if left_out else ""
        raise TraceError(
            f"{', '.join(named)}: there are no files of a fleet"
            f" (queryprof export --format parquet -o DIR){why}"
        )
    return Store(files, tuple(left_out), sum(count > 1 for count in windows.values()))


def _files_below(directory: str) -> Iterator[str]:
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(ENDING) and not name.startswith("."):
                yield os.path.join(folder, name)


def _windows_in(facts: Mapping[bytes, bytes]) -> set[str]:
    """The windows of processes that a file has, as far as its footer says."""
    try:
        found = json.loads(facts.get(PROCESSES_KEY, b"[]"))
        return {json.dumps(one) for one in found} if isinstance(found, list) else set()
    except (ValueError, RecursionError):
        return set()


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
