"""DuckDB's own profiler: the operators of each execution, and a program that is as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
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

pytestmark = pytest.mark.skipif(
    not hasattr(duckdb.DuckDBPyConnection, "get_profiling_information"), reason="older than 1.5"
)

IS_ON = "SELECT current_setting('enable_profiling')"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(OPERATORS_VARIABLE, "1")
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


def test_what_is_no_select_is_measured(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("UPDATE t SET b = 7 WHERE a < 10")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (3, 4)])
    found = {(one.statement, one.name.partition(" ")[0]) for one in recording.profile.operators}
    assert ("UPDATE t SET b = ? WHERE a < ?", "UPDATE") in found
    assert {one for one, name in found if "INSERT" in name} == {"INSERT INTO t VALUES (?, ?)"}


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


def test_it_is_off_unless_it_is_wanted(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPERATORS_VARIABLE)
    before = dict(vars(duckdb.DuckDBPyConnection))
    with queryprof.profile() as recording:
        assert connection.execute(IS_ON).fetchall() == [(None,)]
    assert recording.profile.operators == ()
    assert dict(vars(duckdb.DuckDBPyConnection)) == before


def test_the_program_is_as_it_was(connection: Any, capfd: pytest.CaptureFixture[str]) -> None:
    owners = (duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation, duckdb)
    before = [dict(vars(owner)) for owner in owners]
    other = duckdb.connect()
    other.execute("SELECT range FROM range(3)")
    assert other.fetchone() == (0,)
    with queryprof.profile():
        assert connection.execute(IS_ON).fetchall() == [("no_output",)]
        connection.execute("SELECT a FROM t ORDER BY a")
        assert connection.fetchone() == (0,)
        assert other.fetchone() == (1,)
        other.sql("SELECT 1")  # ends nothing
    assert [dict(vars(owner)) for owner in owners] == before
    assert (other.fetchone(), connection.fetchone()) == ((2,), (1,))  # what is open stays open
    assert connection.execute(IS_ON).fetchall() == [(None,)]
    assert capfd.readouterr() == ("", "")


def test_a_profiler_of_the_programs_own_stays(connection: Any) -> None:
    connection.execute("PRAGMA enable_profiling='no_output'")
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t").fetchall()
    assert connection.execute(IS_ON).fetchall() == [("no_output",)]
    assert scans(recording, "SELECT a FROM t") == [(1, 0, 1000, 1000)]


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


def test_an_older_driver_is_named_once(tmp_path: Path) -> None:
    program = (
        "import duckdb, queryprof\n"
        "del duckdb.DuckDBPyConnection.get_profiling_information\n"
        "queryprof.install('t.qprof')\n"
        "print(duckdb.execute('SELECT 1').fetchall())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, OPERATORS_VARIABLE: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[(1,)]\n"
    assert done.stderr == (
        f"queryprof: operators are not measured: duckdb {duckdb.__version__} is older than 1.5\n"
    )
    profile = read_profile(str(tmp_path / "t.qprof"))
    assert "SELECT ?" in {one.statement for one in profile.aggregates}


class LateError(Exception):
    pass


@pytest.mark.parametrize("when", [False, True], ids=["before", "after"])
def test_what_the_watcher_raises_is_raised(when: bool) -> None:
    """A signal's handler may run in it: its exception is the program's."""
    called: list[object] = []

    def watch(is_over: bool, *_: object) -> None:
        if is_over is when:
            raise LateError

    wrapped: Any = _core.watched_call(called.append, watch)
    with pytest.raises(LateError):
        wrapped(1)
    assert called == [1] * when


def test_a_watcher_sees_arguments_and_result_and_is_not_seen() -> None:
    seen: list[object] = []
    wrapped: Any = _core.watched_call(divmod, lambda *call: seen.append(call))
    traced: list[str] = []
    sys.setprofile(lambda frame, *_: traced.append(frame.f_code.co_name))
    try:
        assert wrapped(7, 2) == (3, 1)
    finally:
        sys.setprofile(None)
    assert "<lambda>" not in traced
    with pytest.raises(ZeroDivisionError):
        wrapped(7, 0)
    named: Any = _core.watched_call(dict, lambda *call: seen.append(call))
    assert named(connection=5, other=6) == {"connection": 5, "other": 6}
    assert seen == [
        (False, 7, 2, None, None),
        (True, 7, 2, None, (3, 1)),
        (False, 7, 0, None, None),
        (True, 7, 0, None, None),
        (False, None, None, 5, None),
        (True, None, None, 5, {"connection": 5, "other": 6}),
    ]


def test_there_is_room_for_so_many_operators(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t WHERE a = 1").fetchall()
        known = [(str(number), "SCAN", 1, 2, 3) for number in range(4000)]
        assert _core.count_operators("SELECT a FROM t WHERE a = 1", True, known)
        assert _core.count_operators("SELECT a FROM t WHERE a = 2", False, known)
        assert not _core.count_operators(
            "SELECT a FROM t WHERE a = 1",
            True,
            [("0", "S", 0, 0, 0)] * 2 + [(str(number), "MORE", 1, 2, 3) for number in range(200)],
        )
        assert not _core.count_operators("SELECT never_executed FROM t", True, known[:1])
    added = [one for one in recording.profile.operators if one.name == "SCAN"]
    assert len(added) == 4000
    (first,) = (one for one in added if one.place == "0")
    assert first == Operator(first.statement, "0", "SCAN", 2, 1, 2, 4, 6)


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
