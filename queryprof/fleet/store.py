"""The Parquet files of a fleet: which there are, and which can be read.

What stands in a footer is data: it is compared, and never followed as a path.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.parquet_files import PROCESSES_KEY, SCHEMA_KEY, SERVICE_KEY, arrow_schema
from queryprof.fleet.schema import FLEET_TABLES, SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from queryprof.fleet.schema import FleetTable

ENDING = ".parquet"
PATTERN = frozenset("*?[]")
"""Characters of a path that engines take for a pattern of names."""


@dataclass(frozen=True, slots=True)
class Store:
    """The files of a fleet.

    Attributes:
        files: their paths, by table and service.
        left_out: why others are left out, a line each.
        repeated: windows of processes that are in more than one file: they count with each.
    """

    files: Mapping[str, Mapping[str, list[str]]]
    left_out: tuple[str, ...]
    repeated: int

    @property
    def paths(self) -> list[str]:
        """All that are read."""
        return [path for some in self.files.values() for paths in some.values() for path in paths]

    @property
    def services(self) -> list[str]:
        """The services that there are."""
        return sorted({service for some in self.files.values() for service in some})


def read_store(directories: Iterable[str]) -> Store:
    """The files below directories, each once.

    Raises:
        TraceError: there are none.
    """
    files: dict[str, dict[str, list[str]]] = {table.name: {} for table in FLEET_TABLES}
    left_out: list[str] = []
    windows: Counter[tuple[str, str]] = Counter()
    named = list({os.path.realpath(one): one for one in directories}.values())
    for directory in named:
        if PATTERN & set(directory):
            raise TraceError(
                f"{directory}: has one of * ? [ ] in its name, which stand for patterns"
            )
        for table in FLEET_TABLES:
            for path in _files_below(os.path.join(directory, table.name)):
                try:
                    service, processes = _facts(path, table)
                except TraceError as error:
                    left_out.append(str(error))
                    continue
                files[table.name].setdefault(service, []).append(path)
                if table.name == "aggregate":
                    windows.update((service, one) for one in processes)
    if not files["aggregate"]:
        why = f"; left out: {left_out[0]}" if left_out else ""
        raise TraceError(
            f"{', '.join(named)}: there are no sums of a fleet"
            f" (queryprof export --format parquet -o DIR){why}"
        )
    return Store(files, tuple(left_out), sum(count > 1 for count in windows.values()))


def _files_below(directory: str) -> Iterator[str]:
    for folder, _, names in os.walk(directory, followlinks=True):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(ENDING) and not name.startswith(".") and _is_regular(path):
                yield path


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # a pipe is waited for
    except OSError:
        return False


def _facts(path: str, table: FleetTable) -> tuple[str, set[str]]:
    """The service of a file, and the windows of processes that it has, as its footer says.

    Raises:
        TraceError: it is no whole file of this version.
    """
    if PATTERN & set(path):
        raise TraceError(f"{path}: has one of * ? [ ] in its name, which stand for patterns")
    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(f"{path}: is no whole Parquet file: {reason}") from error
    facts = found.metadata or {}
    version = facts.get(SCHEMA_KEY, b"").decode("ascii", "replace")
    if version != str(SCHEMA):
        what = f"has version {version} of the schema" if version else "is none of ours"
        raise TraceError(f"{path}: {what}; this queryprof reads version {SCHEMA}")
    expected = arrow_schema(table)
    wrong = [
        name
        for name in expected.names
        if name not in found.names or _type(found, name) != _type(expected, name)
    ]
    if wrong:
        raise TraceError(f"{path}: its column {wrong[0]} is missing, or of another type")
    return facts.get(SERVICE_KEY, b"").decode("utf-8", "replace"), _windows_in(facts)


def _type(schema: pa.Schema, name: str) -> str:
    return str(schema.field(name).type).replace("element:", "item:")


def _windows_in(facts: Mapping[bytes, bytes]) -> set[str]:
    try:
        found = json.loads(facts.get(PROCESSES_KEY, b"[]"))
        return {json.dumps(one) for one in found} if isinstance(found, list) else set()
    except (ValueError, RecursionError):
        return set()
