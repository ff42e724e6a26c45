"""A trace of another version is refused in one sentence, and no file stays open."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from collect.conftest import Command
from collect.test_damaged_traces import COMMANDS, changed, refused

from queryprof.collect.reader import read_profile
from queryprof.errors import TraceError
from queryprof.trace.schema import SCHEMA_VERSION

pytestmark = [pytest.mark.once, pytest.mark.strange_traces]


@pytest.fixture
def left_open(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the files of connections that end without being closed. Newer Pythons warn about
    these.
    """
    found: list[str] = []

    class Watched(sqlite3.Connection):
        def __init__(self, database: str, **options: Any) -> None:
            super().__init__(database, **options)
            self.database = database

        def __del__(self) -> None:
            with suppress(sqlite3.ProgrammingError):  # this one is closed
                self.cursor()
                found.append(self.database)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
    return found


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1, -1, 2**31 - 1])
def test_another_version_is_refused(good: Path, version: int, left_open: list[str]) -> None:
    changed(good, f"PRAGMA user_version = {version}")
    expected = f"^x.qprof: has trace version {version}, and this queryprof reads version 1: "
    with pytest.raises(TraceError, match=expected):
        read_profile("x.qprof")
    gc.collect()
    assert left_open == []


def test_no_command_reads_it(good: Path, command: Command) -> None:
    changed(good, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert len(refused(command)) == len(COMMANDS)


@pytest.mark.parametrize(
    "sql", ["CREATE VIEW v AS SELECT 1", "UPDATE aggregate SET count = -1", "DROP TABLE frame"]
)
def test_a_damaged_trace_leaves_nothing_open(good: Path, sql: str, left_open: list[str]) -> None:
    changed(good, sql)
    with pytest.raises(TraceError):
        read_profile("x.qprof")
    gc.collect()
    assert left_open == []
