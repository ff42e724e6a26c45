"""Traces of older versions are read, and leave nothing open."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from collect.conftest import Command
from collect.test_damaged_traces import COMMANDS, changed, refused, sums

from queryprof.collect.reader import read_profile
from queryprof.trace.schema import SCHEMA_VERSION
from queryprof.trace.tables import TABLES

pytestmark = [pytest.mark.once, pytest.mark.strange_traces]


def to_version(version: int) -> list[str]:
    """The SQL that makes a trace one as an earlier version wrote it."""
    newer = [table for table in TABLES if table.since > version]
    sqls = [f"DROP TABLE {table.name}" for table in reversed(newer)]
    sqls += [
        f"ALTER TABLE {table.name} DROP COLUMN {column.name}"
        for table in TABLES
        for column in table.columns
        if table.since <= version < column.since
    ]
    return [*sqls, f"PRAGMA user_version = {version}"]


def older(good: Path, version: int) -> None:
    """Makes x.qprof a trace as an earlier version wrote it."""
    changed(good, *to_version(version))


@pytest.fixture
def left_open(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of connections that end without being closed, of which newer Pythons warn."""
    found: list[str] = []

    class Watched(sqlite3.Connection):
        def __init__(self, database: str, **options: Any) -> None:
            super().__init__(database, **options)
            self.database = database

        def __del__(self) -> None:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                self.cursor()
                found.append(self.database)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
    return found


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
@pytest.mark.repeats
def test_older_traces_are_read(
    good: Path, command: Command, version: int, left_open: list[str]
) -> None:
    """No connection is left open."""
    older(good, version)
    assert refused(command) == []
    assert sums(read_profile("x.qprof")) == sums(read_profile("good.qprof"))
    gc.collect()
    assert left_open == []


EACH = range(1, SCHEMA_VERSION)


@pytest.mark.parametrize(
    "version",
    [
        *(EACH[0], EACH[len(EACH) // 2], EACH[-1]),
        *(pytest.param(one, marks=pytest.mark.slow) for one in EACH),
    ],
)
@pytest.mark.repeats
def test_damaged_older_traces_are_refused(
    good: Path, command: Command, version: int, left_open: list[str]
) -> None:
    older(good, version)
    old = Path("x.qprof").rename("old.qprof")
    for sql in ("CREATE VIEW v AS SELECT 1", "UPDATE aggregate SET count = -1", "DROP TABLE frame"):
        changed(old, sql)
        assert len(refused(command)) == len(COMMANDS)
    gc.collect()
    assert left_open == []
