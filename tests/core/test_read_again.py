"""A lock that is held through a write of its own transaction counts once."""

from __future__ import annotations

import sqlite3
import time

import pytest

import queryprof
from queryprof.collect.reader import read_profile
from queryprof.recorder.recording import profile_so_far

pytestmark = pytest.mark.once


def test_a_read_transaction_that_writes_in_between_counts_once() -> None:
    """An open cursor holds it long before the write, during it, and long after it."""
    setup = sqlite3.connect("t.db", isolation_level=None)
    setup.execute("CREATE TABLE t (a)")
    setup.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(1000)])
    setup.close()
    with queryprof.profile("t.qprof"):
        db = sqlite3.connect("t.db", isolation_level=None)
        cursor = db.execute("SELECT a FROM t")
        cursor.fetchone()
        time.sleep(1.1)
        assert sum(one.count for one in profile_so_far().lock_holds if one.kind == "read") == 1
        db.execute("BEGIN")
        db.execute("UPDATE t SET a = 1 WHERE a = 999")
        db.execute("COMMIT")
        time.sleep(1.1)
        cursor.fetchall()
        cursor.close()
        db.close()
    reads = [one for one in read_profile("t.qprof").lock_holds if one.kind == "read"]
    assert sum(one.count for one in reads) == 1
