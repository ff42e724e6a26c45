"""Query plans: each statement has the right one, requested once, and the program does not
notice.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from core.plan_recordings import SELECT, draining, trees, with_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queryprof
from conftest import EXAMPLES
from queryprof.analysis.marks import Mark
from queryprof.analysis.plans import normalize_plan
from queryprof.collect.reader import read_profile
from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.report.text.plans import marked_steps


def test_a_plan_is_requested_once_for_each_schema() -> None:
    """Another literal, cursor or row requests no plan; an index does."""
    with draining() as met:
        connection = with_table()
        for number in range(50):
            connection.execute(SELECT, (number,)).fetchall()
            connection.execute(f"SELECT b FROM t WHERE a = {number}").fetchall()
        assert trees(met()) == {"SCAN t\n"}
        assert _core.requested_plan_count() == 1
        connection.execute("CREATE INDEX i ON t (a)")
        for cursor in (connection.cursor(), connection.cursor()):
            cursor.execute(SELECT, (1,)).fetchall()
            assert trees(met()) == {"SEARCH t USING INDEX i (a=?)\n"}
        assert _core.requested_plan_count() == 2
        connection.close()


EQUAL = """
import sys
sys.path.insert(0, {tests!r})
from core.plan_recordings import SELECT, draining, trees, with_table
from queryprof.core import _core

with draining() as met:
    for number in range(20):
        for path in (":memory:", f"{{number}}.db"):
            connection = with_table(path)
            connection.executescript("CREATE INDEX i ON t (a); CREATE TABLE u (x)")
            connection.execute("INSERT INTO t VALUES (1, 2)")
            connection.execute(SELECT, (1,)).fetchall()
            connection.commit()
            connection.close()
        assert trees(met()) == {{"SEARCH t USING INDEX i (a=?)\\n"}}, "met in every interval"
    print(_core.requested_plan_count())
"""


def test_plans_are_requested_once_for_equal_databases() -> None:
    """Tests use a new database each, made by the same statements, also in files.

    This runs in its own process, since only 128 files are told apart.
    """
    program = EQUAL.format(tests=str(Path(__file__).parents[1]))
    requested = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert int(requested) <= 4  # the two statements, in memory and in a file


def test_an_index_that_is_made_again_is_in_the_plan() -> None:
    """IF NOT EXISTS changes nothing only while the index exists."""
    make = "CREATE INDEX IF NOT EXISTS i ON t (a)"
    with draining() as met:
        connection = with_table()
        for sql, tree in (
            (make, "SEARCH t USING INDEX i (a=?)\n"),
            ("DROP INDEX i", "SCAN t\n"),
            (make, "SEARCH t USING INDEX i (a=?)\n"),
        ):
            connection.execute(sql)
            connection.execute(SELECT, (1,)).fetchall()  # may re-prepare the statement
            connection.execute(SELECT, (1,)).fetchall()
            assert trees(met()) == {tree}
        connection.close()


@pytest.mark.parametrize("length", range(70, 90))
def test_a_step_is_cut_between_characters(length: int) -> None:
    name = "é" * length
    with draining() as met:
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE TABLE {name} (a)")
        connection.execute(f"CREATE INDEX x{name} ON {name} (a)")
        connection.execute(f"SELECT a FROM {name} WHERE a = 1").fetchall()
        found = [plan.tree for plan in met() if plan.tree]
        connection.close()
    assert found
    assert not any("\ufffd" in tree or "\udcc3" in tree for tree in found)


def test_plans_are_requested_once_for_all_connections_to_a_file() -> None:
    """Each request opens a connection and ensures that its schema exists."""
    with_table("x.db").close()
    with draining():
        for _ in range(20):
            connection = with_table("x.db")
            connection.execute(SELECT, (1,)).fetchall()
            connection.close()
        assert _core.requested_plan_count() <= 2


def _shared() -> tuple[sqlite3.Connection, sqlite3.Connection]:
    address = "file:shared?mode=memory&cache=shared"
    return sqlite3.connect(address, uri=True), sqlite3.connect(address, uri=True)


def test_databases_in_memory_that_connections_share() -> None:
    """The second connection sees tables that it has not made."""
    with draining() as met:
        for index, tree in (("", "SCAN t\n"), ("CREATE INDEX i ON t (a)", "SEARCH t USING")):
            first, second = _shared()
            first.execute("CREATE TABLE t (a, b)")
            first.execute(index)
            first.commit()
            second.execute(SELECT, (1,)).fetchall()
            (found,) = trees(met())
            assert found.startswith(tree)
            first.close()
            second.close()


def test_a_schema_that_was_never_committed() -> None:
    """A connection that is closed without a commit drops its index."""
    with draining() as met:
        with_table("x.db").close()
        first = sqlite3.connect("x.db", isolation_level=None)
        first.execute("BEGIN")
        first.execute("CREATE INDEX i ON t (a)")
        first.execute(SELECT, (1,)).fetchall()
        assert trees(met()) == {"SEARCH t USING INDEX i (a=?)\n"}
        first.close()
        second = sqlite3.connect("x.db")
        second.execute(SELECT, (1,)).fetchall()
        assert trees(met()) == {"SCAN t\n"}
        second.close()


STATEMENTS = (
    SELECT,
    "SELECT a FROM t ORDER BY b",
    "SELECT count(*) FROM t JOIN u ON u.x = t.a",
    "SELECT DISTINCT b FROM t WHERE b > ? AND a < ?",
    "UPDATE t SET b = ? WHERE a = ?",
)


CHANGES = (
    "CREATE INDEX IF NOT EXISTS i ON t (a)",
    "CREATE INDEX IF NOT EXISTS j ON t (b, a)",
    "CREATE INDEX IF NOT EXISTS k ON u (x)",
    "DROP INDEX IF EXISTS i",
    "DROP INDEX IF EXISTS j",
    "CREATE TEMP TABLE IF NOT EXISTS u (x PRIMARY KEY)",
    "PRAGMA automatic_index = OFF",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "ANALYZE",
)


actions = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((*STATEMENTS, *STATEMENTS, *CHANGES, "reopen"))),
    max_size=40,
)


@settings(
    max_examples=EXAMPLES // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(actions)
def test_the_plan_is_the_one_that_sqlite_has(actions: list[tuple[int, str]]) -> None:
    """After random schema changes on several connections, each plan is compared with SQLite's own
    answer.
    """
    addresses = (":memory:", ":memory:", "one.db", "one.db")
    for suffix in ("", "-journal"):
        Path(f"one.db{suffix}").unlink(missing_ok=True)

    def opened(address: str) -> sqlite3.Connection:
        connection = sqlite3.connect(address, isolation_level=None, timeout=0)
        for table in ("t (a, b)", "u (x)"):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        return connection

    with draining() as met:
        connections = [opened(address) for address in addresses]
        for turn, (number, sql) in enumerate(actions):
            try:
                if sql == "reopen":
                    connections[number].close()
                    connections[number] = opened(addresses[number])
                    continue
                values = (1,) * sql.count("?")
                connections[number].execute(sql, values).fetchall()
                met()  # a change by another connection is noticed during the run: no plan yet
                connections[number].execute(sql, values).fetchall()
                if sql not in STATEMENTS:
                    continue
                with muted():
                    # A text of its own: sqlite3 caches statements, and SQLite would not prepare
                    # this one again after the schema has changed.
                    asked = f"EXPLAIN QUERY PLAN {sql} -- {turn}"
                    actual = connections[number].execute(asked, values)
                    steps = [row[3] for row in actual]
            except sqlite3.OperationalError:
                met()
                continue
            (plan,) = trees(met(), sql)
            assert [line.strip() for line in plan.splitlines()] == steps
        for connection in connections:
            connection.close()


def test_no_plan_where_none_is_wanted(tmp_path: Path) -> None:
    """The settings have `plans = false`."""
    (tmp_path / "pyproject.toml").write_text("[tool.queryprof]\nplans = false\n")
    connection = with_table()
    with queryprof.profile() as recording:
        connection.execute(SELECT, (1,))
    connection.close()
    assert recording.profile.plans == ()


@pytest.mark.once
@pytest.mark.slow
def test_plans_are_in_the_trace_of_every_process() -> None:
    """A forked child has its own plans. SIGKILL loses at most one second."""
    with_table("x.db").close()
    program = f"""
import os, sqlite3, time
import queryprof
queryprof.install("x.qprof")
c = sqlite3.connect("x.db")
c.execute({SELECT!r}, (1,)).fetchall()
if os.fork() == 0:
    d = sqlite3.connect("x.db")
    d.execute({SELECT!r}, (1,)).fetchall()
    time.sleep(1.6)
    os.kill(os.getpid(), 9)
os.wait()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    traces = [name for name in os.listdir() if name.endswith(".qprof")]
    assert len(traces) == 2
    for name in traces:
        assert trees(list(read_profile(name).plans)) == {"SCAN t\n"}
        assert {plan.database for plan in read_profile(name).plans} == {str(Path("x.db").resolve())}


def test_threads_on_one_connection() -> None:
    """Threads request plans while others run statements on the connection, and one changes the
    schema.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.execute("CREATE TABLE t (a, b)")

    def work(number: int) -> None:
        for turn in range(300):
            sql = f"SELECT a AS t{number}_{turn % 40} FROM t WHERE b = ?"
            connection.execute(sql, (turn,)).fetchall()
            if number == 0 and turn % 50 == 0:
                connection.execute(f"CREATE INDEX i{turn} ON t (b, a)")

    with draining() as met:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({plan.statement for plan in met()}) >= 6 * 40
    connection.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCAN TABLE t AS x\n", "SCAN x\n"),
        ("SEARCH TABLE t USING INDEX i (a=?)\n", "SEARCH t USING INDEX i (a=?)\n"),
        (
            "CO-ROUTINE 0x55D0A8\n  SCAN TABLE t\nSCAN SUBQUERY 0x55D0A8 AS s\n",
            "CO-ROUTINE (subquery-1)\n  SCAN t\nSCAN (subquery-1)\n",
        ),
        ("EXECUTE SCALAR SUBQUERY 1\n  SCAN TABLE t\n", "SCALAR SUBQUERY 1\n  SCAN t\n"),
        (
            "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY\n",
            "USE TEMP B-TREE FOR LAST TERM OF ORDER BY\n",
        ),
        (
            "SEARCH TABLE u USING AUTOMATIC COVERING INDEX (x=?)\n",
            "BLOOM FILTER ON u (x=?)\nSEARCH u USING AUTOMATIC COVERING INDEX (x=?) LEFT-JOIN\n",
        ),
        ("SEARCH TABLE b USING INDEX i (g=?)\n", "SEARCH b EXISTS USING INDEX i (g=?)\n"),
    ],
)
def test_the_normal_form_is_the_same_for_versions_of_sqlite(old: str, new: str) -> None:
    """SQLite 3.24 to 3.35 print the same plan in another form."""
    assert normalize_plan(old) == normalize_plan(new)


def test_what_a_statement_makes_itself_is_no_large_table() -> None:
    """A scan of its own WITH is not marked; a scan of a table is."""
    plan = normalize_plan("MATERIALIZE n\n  SCAN t\nSCAN n\n")
    marks = dict(marked_steps((plan,), Mark("scan", 1000, 1, is_repeated=True)))
    assert [step for step, mark in marks.items() if mark] == ["  SCAN t"]
