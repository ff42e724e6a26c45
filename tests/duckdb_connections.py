"""Connections of DuckDB whose operators are measured, and what is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from queryprof.core.settings import OPERATORS_VARIABLE

SETTING = "SELECT current_setting('enable_profiling')"


def is_on(connection: Any) -> bool:
    """Whether its profiler is on."""
    return "disabled" not in connection.get_profiling_information()


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(OPERATORS_VARIABLE, "1")
    duckdb: Any = pytest.importorskip("duckdb")
    made = duckdb.connect()
    made.execute("CREATE TABLE t AS SELECT range AS a, range % 10 AS b FROM range(1000)")
    return made


def scans(recording: Any, statement: str) -> list[tuple[int, int, int, int]]:
    """(executions, unfinished, rows, rows read) of the scans of a table."""
    return [
        (one.executions, one.unfinished, one.rows, one.scanned)
        for one in recording.profile.operators
        if one.statement == statement and one.name.startswith("TABLE_SCAN")
    ]
