"""Counts and rows against ground truth: random programs, and a simple model of what they do."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queryprof
from conftest import EXAMPLES, by_operation

"""Random programs; fewer where the same test runs a second time (other Pythons, sanitizers)."""

INSERT = "INSERT INTO t VALUES (?, ?)"
SELECT = "SELECT a, b FROM t WHERE a < ?"
UPDATE = "UPDATE t SET b = ? WHERE a < ?"
BROKEN = "SELECT * FROM nowhere"
TABLE = "CREATE TABLE t(a, b)"


@dataclass
class Model:
    """A program's calls, counted by hand."""

    connection: sqlite3.Connection
    cursors: list[sqlite3.Cursor]
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    serves: dict[int, str] = field(default_factory=dict)

    def note(self, statement: str, operation: str, rows: int = 0) -> None:
        self.calls[statement, operation] += 1
        self.rows[statement, operation] += rows


def _execute(model: Model, place: int, sql: str, parameters: tuple[int, ...], direct: bool) -> None:
    if direct:
        model.cursors[place] = model.connection.execute(sql, parameters)
    else:
        model.cursors[place].execute(sql, parameters)
    model.serves[place] = sql


def act(model: Model, action: tuple[str, int, int, bool]) -> None:
    name, place, size, direct = action
    cursor = model.cursors[place]
    served = model.serves.get(place, "(unknown)")
    if name == "insert":
        _execute(model, place, INSERT, (size, size), direct)
        model.note(INSERT, "execute", 1)
    elif name == "select":
        _execute(model, place, SELECT, (size,), direct)
        model.note(SELECT, "execute")
    elif name == "update":
        before = model.connection.total_changes
        _execute(model, place, UPDATE, (1, size), direct)
        model.note(UPDATE, "execute", model.connection.total_changes - before)
    elif name == "many":
        owner = model.connection if direct else cursor
        result = owner.executemany(INSERT, [(i, i) for i in range(size)])
        if direct:
            model.cursors[place] = result
        model.serves[place] = INSERT
        model.note(INSERT, "executemany", size)
    elif name == "broken":
        with contextlib.suppress(sqlite3.OperationalError):
            (model.connection if direct else cursor).execute(BROKEN)
        model.note(BROKEN, "execute")
        model.errors[BROKEN, "execute"] += 1
        if not direct:
            model.serves.pop(place, None)
    elif name == "fetchone":
        model.note(served, "fetchone", cursor.fetchone() is not None)
    elif name == "fetchmany":
        model.note(served, "fetchmany", len(cursor.fetchmany(size)))
    elif name == "fetchall":
        model.note(served, "fetchall", len(cursor.fetchall()))
    elif name == "iterate":
        rows = sum(1 for _ in cursor)
        model.calls[served, "next"] += rows + 1
        model.rows[served, "next"] += rows
    elif name == "commit":
        model.connection.commit()
        model.note("COMMIT", "commit")
    elif name == "rollback":
        model.connection.rollback()
        model.note("ROLLBACK", "rollback")
    elif name == "with":
        with contextlib.suppress(KeyError), model.connection:
            if direct:
                raise KeyError
        model.note(*(("ROLLBACK", "rollback") if direct else ("COMMIT", "commit")))


ACTIONS = st.tuples(
    st.sampled_from(
        [
            "insert",
            "select",
            "update",
            "many",
            "broken",
            "fetchone",
            "fetchmany",
            "fetchall",
            "iterate",
            "commit",
            "rollback",
            "with",
        ]
    ),
    st.integers(0, 2),
    st.integers(0, 12),
    st.booleans(),
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTIONS, max_size=40))
def test_counts_rows_and_errors_are_exact(actions: list[tuple[str, int, int, bool]]) -> None:
    """Every call, row and error of any program is counted under the statement that it served."""
    connection = sqlite3.connect(":memory:")
    connection.execute(TABLE)
    model = Model(connection, [connection.cursor() for _ in range(3)])
    with queryprof.profile() as recording:
        for action in actions:
            act(model, action)
    connection.close()
    profile = recording.profile
    assert +model.calls == by_operation(profile)
    assert +model.rows == +by_operation(profile, "rows")
    assert +model.errors == +by_operation(profile, "errors")
    histograms: Counter[str] = Counter()
    for aggregate in profile.aggregates:
        histograms[aggregate.statement] += sum(aggregate.histogram.values())
    executions: Counter[str] = Counter()
    for (statement, operation), count in model.calls.items():
        if not operation.startswith("fetch") and operation != "next":
            executions[statement] += count
    assert +executions == +histograms


def test_forty_threads_inside_the_driver_at_once() -> None:
    """No fetch loses its statement, however many executions are in progress at the same time."""
    threads, cursors, rounds = 40, 5, 4
    all_inside = threading.Barrier(threads)

    def work(number: int) -> None:
        with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
            connection.create_function("meet", 0, lambda: all_inside.wait(timeout=60) * 0)
            for _ in range(rounds):
                opened = [
                    connection.execute(f"SELECT meet() AS m{number} UNION ALL SELECT {i}")
                    for i in range(cursors)
                ]
                for cursor in opened:
                    assert len(cursor.fetchall()) == 2

    with queryprof.profile() as recording:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    statement = "SELECT meet() AS m{} UNION ALL SELECT ?"
    calls = by_operation(recording.profile)
    for number in range(threads):
        for operation in ("execute", "fetchall"):
            assert cursors * rounds == calls[statement.format(number), operation]
    assert ("(unknown)", "fetchall") not in calls
