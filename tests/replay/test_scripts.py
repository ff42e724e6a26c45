"""Scripts in a replay, as the driver executes them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from queryprof.replay.player import _execute
from queryprof.replay.workload import INSIDE, OUTSIDE, Execution

pytestmark = pytest.mark.once


def execution(operation: str, text: str | None, state: int) -> Execution:
    return Execution(1, 1, 1, "t.db", operation, 0, 0, text, (), False, state)


def test_a_script_commits_what_was_begun_before_it() -> None:
    """A later rollback takes nothing of it back."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE t (a)")
        for one in (
            execution("execute", "INSERT INTO t VALUES (1)", INSIDE),
            execution("executescript", "INSERT INTO t VALUES (2);", OUTSIDE),
            execution("execute", "INSERT INTO t VALUES (3)", INSIDE),
            execution("rollback", None, OUTSIDE),
        ):
            _execute(db, one)
        assert db.execute("SELECT a FROM t").fetchall() == [(1,), (2,)]
