"""The longest call is the longest of all parts, and a refused statement is no run."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

import queryprof
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once


def test_the_longest_call_is_of_all_parts() -> None:
    """This holds however many parts of a recording are read after it."""
    db = sqlite3.connect(":memory:")
    db.create_function("sleep", 1, time.sleep)
    with queryprof.profile("t.qprof"):
        for seconds in (0.05, 0.0, 0.0, 0.0):
            with queryprof.at_most(queries=1):
                db.execute("SELECT sleep(?)", (seconds,)).fetchone()
    db.close()
    found = [one for one in read_profile("t.qprof").aggregates if "sleep" in one.statement]
    assert max(one.max_ns for one in found) >= 50_000_000
    assert max(one.execution_max_ns for one in found) >= 50_000_000


def test_a_statement_that_is_refused_is_no_run_of_those_before() -> None:
    setup = sqlite3.connect("t.db", isolation_level=None)
    setup.execute("CREATE TABLE t (a)")
    setup.close()

    def drop() -> None:
        other = sqlite3.connect("t.db", isolation_level=None)
        other.execute("DROP TABLE t")
        other.close()

    with queryprof.profile("t.qprof"):
        db = sqlite3.connect("t.db", isolation_level=None)
        with queryprof.span("s"):
            for number in range(5):
                if number == 3:
                    thread = threading.Thread(target=drop)
                    thread.start()
                    thread.join()
                try:
                    db.execute("SELECT a FROM t").fetchall()
                except sqlite3.OperationalError:
                    assert number >= 3
        db.close()
    (span,) = read_profile("t.qprof").slow_spans
    found = [(run.statement, run.executions) for run in span.runs]
    assert sum(count for _, count in found) == span.executions == 5, found
