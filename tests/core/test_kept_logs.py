"""Write-ahead logs that SQLite cannot restart, because read transactions overlap."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from core.work_programs import database

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all

pytestmark = [pytest.mark.once, pytest.mark.slow]


def turns_until_the_log_was_kept(log: Path, is_overlapping: bool) -> Iterator[None]:
    """Yield until the log is large, if readers overlap, and then 40 times and for 1.5 seconds."""
    while is_overlapping and log.stat().st_size < 12_000_000:
        yield
    turns, start_s = 0, time.monotonic()
    while turns < 40 or time.monotonic() < start_s + 1.5:
        turns += 1
        yield


@pytest.mark.parametrize("is_overlapping", [True, False])
def test_readers_that_take_turns(tmp_path: Path, is_overlapping: bool) -> None:
    """No transaction stays open for a second, and each begins before the last one ends. SQLite
    restarts the log in a moment without a reader.
    """
    path = database(tmp_path / "t.db", "wal")
    with ExitStack() as stack:
        writer, *readers = (
            stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            for _ in range(3)
        )
        writer.execute("CREATE TABLE large (a)")
        with queryprof.profile() as recording:
            readers[0].execute("BEGIN")
            readers[0].execute("SELECT a FROM t").fetchall()
            for _ in turns_until_the_log_was_kept(Path(f"{path}-wal"), is_overlapping):
                if not is_overlapping:
                    readers[0].execute("COMMIT")
                writer.execute("INSERT INTO large VALUES (zeroblob(1000000))")
                writer.execute("DELETE FROM large")
                readers[1].execute("BEGIN")
                readers[1].execute("SELECT a FROM t").fetchall()
                if readers[0].in_transaction:
                    readers[0].execute("COMMIT")
                readers.reverse()
                time.sleep(0.01)
            readers[0].execute("COMMIT")
    found = find_all(Report(recording.profile), lambda *_: None, {})
    kept = [one.statement for one in found if one.category == "pinned_wal"]
    assert kept == ["SELECT a FROM t"] * is_overlapping
