"""Read the findings that a project accepts.

The list is `accepted` in queryprof.toml, or in [tool.queryprof] of pyproject.toml.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from queryprof.errors import QueryprofError

EXAMPLE = 'accepted = [{ finding = "n_plus_one-12345678", reason = "why" }]'


def read_accepted_findings(directory: Path) -> dict[str, str]:
    """Return the reason for each accepted finding, by the finding's identity.

    Reads the nearest file with an `accepted` list, in the directory or its parents.

    Raises:
        QueryprofError: the file cannot be read, or has invalid entries.
    """
    for folder in (directory, *directory.parents):
        for name, keys in (("queryprof.toml", ()), ("pyproject.toml", ("tool", "queryprof"))):
            path = folder / name
            if path.is_file():
                table = _parse_toml_file(path)
                for key in keys:
                    table = table.get(key, {}) if isinstance(table, dict) else {}
                if "accepted" in table:
                    return _reasons_by_finding(path, table["accepted"])
    return {}


def _parse_toml_file(path: Path) -> Any:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise QueryprofError(f"{path}: {error}") from error


def _reasons_by_finding(path: Path, entries: Any) -> dict[str, str]:
    if not isinstance(entries, list):
        raise QueryprofError(f"{path}: accepted is not a list; write {EXAMPLE}")
    found = {}
    for entry in entries:
        is_right = isinstance(entry, dict) and set(entry) == {"finding", "reason"}
        if not is_right or not all(isinstance(v, str) and v for v in entry.values()):
            raise QueryprofError(f"{path}: accepted has {entry!r}: write {EXAMPLE}")
        found[entry["finding"]] = entry["reason"]
    return found
