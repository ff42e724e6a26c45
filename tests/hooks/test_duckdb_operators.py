"""DuckDB's own profiler: the operators of each execution, and a program that is as it was."""

from __future__ import annotations

import json
import signal
import warnings
from pathlib import Path
from typing import Any

import pytest
from duckdb_connections import connection, is_on, scans
from hypothesis import given
from hypothesis import strategies as st

import queryprof
from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.core import _core
from queryprof.core.settings import OPERATORS_VARIABLE
from queryprof.hooks.drivers.duckdb_profile import (
    LONGEST_NAME,
    MOST_OPERATORS,
    OperatorProfile,
    profile_of,
)
from queryprof.model import Operator

duckdb: Any = pytest.importorskip("duckdb")

__all__ = ["connection"]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not hasattr(duckdb.DuckDBPyConnection, "get_profiling_information"), reason="older than 1.5"
    ),
]


def test_rows_are_those_of_all_executions(connection: Any) -> None:
    with queryprof.profile() as recording:
        for number in (899, 989, 998):
            connection.execute("SELECT a FROM t WHERE a > ?", [number]).fetchall()
    found = recording.profile.operators
    assert scans(recording, "SELECT a FROM t WHERE a > ?") == [(3, 0, 100 + 10 + 1, 3000)]
    assert all(one.ns >= 0 for one in found)
    assert any(one.ns > 0 for one in found)
    assert {one.statement for one in found} == {"SELECT a FROM t WHERE a > ?"}
    assert any("TABLE_SCAN" in one.name and one.name.endswith(".t") for one in found)


def test_operators_take_the_time_of_the_query(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SET threads = 1")
        connection.execute("SELECT sum(sqrt(range)) FROM range(3000000)").fetchall()
    (query,) = {one.statement for one in recording.profile.operators}
    # A thread that waits for a processor makes the call longer, and no operator.
    called_ns = sum(a.total_ns for a in recording.profile.aggregates if a.statement == query)
    operators_ns = sum(one.ns for one in recording.profile.operators)
    assert called_ns / 300 < operators_ns <= called_ns * 1.01


def test_each_way_to_an_execution_is_measured(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SELECT 1 FROM t").fetchall()
        list(iter(connection.execute("SELECT 2, a FROM t WHERE a < 3").fetchone, None))
        while connection.execute("SELECT 3, a, a FROM t").fetchmany(2000):
            while connection.fetchmany(2000):
                pass
            break
        connection.sql("SELECT a, 4 FROM t").fetchall()
        cursor = connection.cursor()
        cursor.execute("SELECT a, a, 5 FROM t").fetchall()
        duckdb.execute("SELECT b FROM t", connection=connection).fetchall()
        connection.execute("SELECT 6, b FROM t").fetchone()
        connection.execute("SELECT a, 7, b FROM t")
        connection.close()
    assert [
        scans(recording, statement)[0][:2]
        for statement in (
            "SELECT ? FROM t",
            "SELECT ?, a FROM t WHERE a < ?",
            "SELECT ?, a, a FROM t",
            "SELECT a, ? FROM t",
            "SELECT a, a, ? FROM t",
            "SELECT b FROM t",
            "SELECT ?, b FROM t",
            "SELECT a, ?, b FROM t",
        )
    ] == [(1, 0)] * 6 + [(1, 1)] * 2


def test_an_insert_has_no_profile(connection: Any) -> None:
    """As DuckDB's profiling_coverage has it, which is the program's. Of executemany it is the last
    one's.
    """
    with queryprof.profile() as recording:
        connection.execute("CREATE TABLE u AS SELECT a FROM t")
        connection.execute("UPDATE t SET b = 7 WHERE a < 10")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (3, 4)])
        connection.executemany("SELECT a FROM t WHERE a = ?", [(1,), (2,)])
    found = {one.statement: one.executions for one in recording.profile.operators}
    assert found["CREATE TABLE u AS SELECT a FROM t"] == 1
    assert found.get("SELECT a FROM t WHERE a = ?", 1) == 1
    assert "INSERT INTO t VALUES (?, ?)" not in found


def test_the_modules_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its objects live as long as a call."""
    monkeypatch.setenv(OPERATORS_VARIABLE, "1")
    duckdb.set_default_connection(duckdb.connect())
    duckdb.execute("CREATE TABLE t AS SELECT range AS a FROM range(9)")
    with queryprof.profile() as recording:
        for _ in range(3):
            duckdb.execute("SELECT a FROM t").fetchall()
    assert scans(recording, "SELECT a FROM t") == [(3, 0, 27, 27)]
    assert not is_on(duckdb.default_connection())


def test_a_cursor_for_each_query(connection: Any) -> None:
    with queryprof.profile() as recording:
        for _ in range(5):
            connection.cursor().execute("SELECT a FROM t").fetchall()
    assert scans(recording, "SELECT a FROM t") == [(5, 0, 5000, 5000)]


def test_with_and_without_an_index_are_two_plans(connection: Any) -> None:
    connection.execute("CREATE INDEX i ON t (a)")
    with queryprof.profile() as recording:
        for _ in range(2):
            connection.execute("SELECT b FROM t WHERE a = 7").fetchall()
        connection.execute("DROP INDEX i")
        connection.execute("SELECT b FROM t WHERE a = 7").fetchall()
    found = {one.name: one.executions for one in recording.profile.operators}
    assert found["TABLE_SCAN main.t (index)"] == 2
    assert found["TABLE_SCAN main.t"] == 1


def test_of_a_text_with_several_statements_the_last_is_measured(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SELECT 1; SELECT a FROM t WHERE a < 5").fetchall()
        connection.sql("SELECT b FROM t").filter("b > 1").fetchall()  # of none that is known
    assert scans(recording, "SELECT ?; SELECT a FROM t WHERE a < ?") == [(1, 0, 5, 1000)]
    assert len({one.statement for one in recording.profile.operators}) == 1


def test_a_failed_statement_has_no_operators(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t").fetchall()
        for _ in range(3):
            with pytest.raises(duckdb.Error):
                connection.execute("SELECT nothing FROM t")
    assert scans(recording, "SELECT a FROM t") == [(1, 0, 1000, 1000)]
    assert {one.statement for one in recording.profile.operators} == {"SELECT a FROM t"}


def test_no_value_is_kept(connection: Any, tmp_path: Path) -> None:
    with queryprof.profile(tmp_path / "t.qprof"):
        connection.execute("SELECT a, 'SECRET-1' FROM t WHERE b::VARCHAR <> 'SECRET-2'").fetchall()
        connection.execute("SELECT a FROM t WHERE b::VARCHAR <> ?", ["SECRET-3"]).fetchall()
        connection.execute("SELECT count(*) FROM t WHERE b::VARCHAR = 'SECRET-4'").fetchone()
        assert connection.fetchone() is None
        connection.sql("SELECT * FROM (VALUES ('SECRET-5'))").fetchall()
    assert read_profile(str(tmp_path / "t.qprof")).operators
    assert b"SECRET" not in (tmp_path / "t.qprof").read_bytes()


def test_tables_that_are_variables_of_the_caller_are_found(connection: Any) -> None:
    """DuckDB looks into the frames of its callers."""
    pandas = pytest.importorskip("pandas")

    def read() -> Any:
        mine = pandas.DataFrame({"x": [3]})
        assert len(mine) == 1
        return connection.execute("SELECT x FROM mine").fetchall()

    with queryprof.profile():
        assert read() == [(3,)]


PROGRAM = """
import duckdb, os, signal, sys
connection = duckdb.connect()
connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(1000)")
for number in range(4):
    connection.execute("SELECT a FROM t WHERE a >= ?", [number]).fetchall()
END
"""


@pytest.mark.slow
def test_processes_are_added_up_and_a_killed_one_loses_nothing(
    queryprof: Run, tmp_path: Path
) -> None:
    for name, end in (("ends", ""), ("killed", "os.kill(os.getpid(), signal.SIGKILL)")):
        (tmp_path / f"{name}.py").write_text(PROGRAM.replace("END", end))
        options = ("--operators", "--no-report", "-o", f"{name}.qprof")
        done = queryprof("run", *options, f"{name}.py", cwd=tmp_path)
        assert done.returncode == (0 if name == "ends" else -signal.SIGKILL)
    queryprof("merge", "both.qprof", "ends.qprof", "killed.qprof", cwd=tmp_path)
    for name, times in (("ends", 1), ("killed", 1), ("both", 2)):
        profile = read_profile(str(tmp_path / f"{name}.qprof"))
        (scan,) = (
            one
            for one in profile.operators
            if one.name.startswith("TABLE_SCAN") and "WHERE" in one.statement
        )
        assert (scan.executions, scan.unfinished) == (4 * times, 0)
        assert (scan.rows, scan.scanned) == ((4000 - 6) * times, 4000 * times)
    shown = queryprof("report", "--top", 10, "both.qprof", cwd=tmp_path)
    assert "operators, by DuckDB, each of 8 executions: time, rows, rows read" in shown.stdout


def test_there_is_room_for_so_many_operators(connection: Any) -> None:
    one, more = "SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a = 2"
    with queryprof.profile() as recording:
        connection.execute(one).fetchall()
        known = [(str(number), "SCAN", 1, 2, 3) for number in range(4000)]
        assert _core.count_operators(one, True, 5, known)
        assert _core.count_operators(more, False, 5, known)
        full = [(str(number), "MORE", 1, 2, 3) for number in range(200)]
        assert not _core.count_operators(one, True, 5, full)
        assert not _core.count_operators("SELECT never_executed FROM t", True, 5, known[:1])
    added = [one for one in recording.profile.operators if one.name == "SCAN"]
    assert len(added) == 4000
    (first,) = (one for one in added if one.place == "0")
    assert first == Operator(first.statement, 5, "0", "SCAN", 2, 1, 2, 4, 6)


def test_each_plan_of_a_statement_is_a_tree_of_its_own(connection: Any) -> None:
    """999 is the largest: statistics say that none is larger."""
    with queryprof.profile() as recording:
        for number in (998, 999, 997):
            connection.execute("SELECT a FROM t WHERE a > ?", [number]).fetchall()
    plans: dict[int, list[tuple[str, int]]] = {}
    for one in recording.profile.operators:
        plans.setdefault(one.plan, []).append((one.name.partition(" ")[0], one.executions))
    found = [[one for one in plan if one[0] != "RESULT_COLLECTOR"] for plan in plans.values()]
    assert sorted(found) == [[("EMPTY_RESULT", 1)], [("TABLE_SCAN", 2)]]


def test_names_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that of the file, which no statement has."""
    monkeypatch.setenv(OPERATORS_VARIABLE, "1")
    connection = duckdb.connect(str(tmp_path / "SECRET.db"))
    connection.execute('CREATE SCHEMA "s.1"')
    for name in ('"s.1"."a.b""c"', '"d\ne"', "f"):
        connection.execute(f"CREATE TABLE {name} AS SELECT range AS a FROM range(9)")
    with queryprof.profile(tmp_path / "t.qprof"):
        for name in ('"s.1"."a.b""c"', '"d\ne"', "f"):
            connection.execute(f"SELECT a FROM {name}").fetchall()
    profile = read_profile(str(tmp_path / "t.qprof"))
    scans = [one.name for one in profile.operators if one.name.startswith("TABLE_SCAN")]
    assert scans == [
        'TABLE_SCAN "s.1"."a.b""c"',
        'TABLE_SCAN main."d\ne"',
        "TABLE_SCAN main.f",
    ]
    assert b"SECRET" not in (tmp_path / "t.qprof").read_bytes().replace(str(tmp_path).encode(), b"")
    connection.close()


def test_duckdbs_copies_of_rows_are_none_of_a_statement(connection: Any) -> None:
    pytest.importorskip("pyarrow")
    with queryprof.profile() as recording, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection.execute("SELECT a FROM t")
        connection.to_arrow_table()
        connection.execute("SELECT b FROM t").fetchall()
    assert not [one for one in recording.profile.operators if "COLUMN_DATA_SCAN" in one.name]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)
NODES = st.recursive(
    st.just([]),
    lambda inner: st.lists(
        ANY
        | st.fixed_dictionaries(
            {},
            optional={
                "type": ANY,
                "extra_info": ANY | st.just({"Table": "a"}),
                "intermediate_rows": ANY | st.integers(0, 1 << 70),
                "operator_rows_scanned": ANY,
                "timing": ANY | st.floats(0, 1e30),
                "children": inner,
            },
        ),
        max_size=3,
    ),
)
CONTENT = ANY | st.fixed_dictionaries(
    {"operator": NODES}, optional={"query": ANY | st.fixed_dictionaries({"sql": ANY})}
)


@pytest.mark.once
@given(content=CONTENT)
def test_any_text_is_a_profile_or_none(content: object) -> None:
    """The core takes all of its figures."""
    found = profile_of(json.dumps(content))
    if found is not None:
        assert isinstance(found, OperatorProfile)
        for place, name, rows, scanned, ns in found.operators:
            assert place
            assert len(name) <= LONGEST_NAME
            assert all(
                type(figure) is int and 0 <= figure < 1 << 62 for figure in (rows, scanned, ns)
            )


def test_a_profile_has_a_limit() -> None:
    assert profile_of("{") is None
    assert profile_of("[" * 100_000) is None
    deep = '{"type":"A","children":[' * 400 + "]}" * 400
    found = profile_of('{"operator":[' + deep + "]}")
    assert found is not None
    assert len(found.operators) == 400
    wide = ",".join(['{"type":"' + "A" * 999 + '"}'] * (MOST_OPERATORS + 1))
    found = profile_of('{"operator":[' + wide + "]}")
    assert found is not None
    assert len(found.operators) == MOST_OPERATORS
    assert {name for _, name, *_ in found.operators} == {"A" * LONGEST_NAME}
