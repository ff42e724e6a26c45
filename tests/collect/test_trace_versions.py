"""What each version of the trace has had never changes: a new column belongs to a new version."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysis.by_hand import GOLDEN, WRITE

from queryprof.trace.schema import SCHEMA_VERSION
from queryprof.trace.tables import TABLES

pytestmark = pytest.mark.once

FILE: Path = GOLDEN / "trace-versions.txt"


def added(version: int) -> list[str]:
    """The columns that are new in a version, each with its table."""
    return [
        f"{table.name}.{column.name}"
        for table in TABLES
        for column in table.columns
        if max(table.since, column.since) == version
    ]


def test_a_version_keeps_its_columns() -> None:
    """Where this fails, a column or table lacks its `since`, one higher than the newest. Run with
    QUERYPROF_GOLDEN=write a new version is added, and no older one is changed.
    """
    known = [line.split() for line in FILE.read_text().splitlines()] if FILE.exists() else []
    if WRITE:
        known += [added(version) for version in range(len(known) + 1, SCHEMA_VERSION + 1)]
        FILE.write_text("".join(" ".join(names) + "\n" for names in known))
    for version, names in enumerate(known, 1):
        assert added(version) == names, f"version {version}"
    assert len(known) == SCHEMA_VERSION, "a new version: QUERYPROF_GOLDEN=write adds it"
