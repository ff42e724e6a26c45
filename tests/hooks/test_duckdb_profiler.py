"""DuckDB's profiler, switched on for a recording: the program, and its own settings, are as
they were.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from duckdb_connections import SETTING, connection, is_on, scans

import queryprof
from queryprof.collect.reader import read_profile
from queryprof.core import _core
from queryprof.core.settings import OPERATORS_VARIABLE

duckdb: Any = pytest.importorskip("duckdb")

__all__ = ["connection"]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not hasattr(duckdb.DuckDBPyConnection, "get_profiling_information"), reason="older than 1.5"
    ),
]


def test_it_is_off_unless_it_is_wanted(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPERATORS_VARIABLE)
    before = dict(vars(duckdb.DuckDBPyConnection))
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t").fetchall()
        assert not is_on(connection)
    assert recording.profile.operators == ()
    assert dict(vars(duckdb.DuckDBPyConnection)) == before


def test_the_program_is_as_it_was(connection: Any, capfd: pytest.CaptureFixture[str]) -> None:
    owners = (duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation, duckdb)
    before = [dict(vars(owner)) for owner in owners]
    other = duckdb.connect()
    other.execute("SELECT range FROM range(3)")
    assert other.fetchone() == (0,)
    with queryprof.profile():
        connection.execute("SELECT a FROM t ORDER BY a")
        assert is_on(connection)
        assert connection.fetchone() == (0,)
        assert other.fetchone() == (1,)
        other.sql("SELECT 1")  # ends nothing
    assert [dict(vars(owner)) for owner in owners] == before
    assert (other.fetchone(), connection.fetchone()) == ((2,), (1,))  # what is open stays open
    assert not is_on(connection)
    assert connection.execute(SETTING).fetchall() == [(None,)]
    assert capfd.readouterr() == ("", "")


def test_a_profiler_of_the_programs_own_stays(connection: Any) -> None:
    connection.execute("PRAGMA enable_profiling='no_output'")
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t").fetchall()
    assert connection.execute(SETTING).fetchall() == [("no_output",)]
    assert scans(recording, "SELECT a FROM t") == [(1, 0, 1000, 1000)]


def test_an_older_driver_is_named_once(tmp_path: Path) -> None:
    program = (
        "import duckdb, queryprof\n"
        "del duckdb.DuckDBPyConnection.get_profiling_information\n"
        "queryprof.install('t.qprof')\n"
        "print(duckdb.execute('SELECT 1').fetchall())\n"
        "queryprof.uninstall(); queryprof.install('u.qprof')\n"
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


@pytest.mark.parametrize("raises", [False, True])
def test_what_the_watcher_returns_lives_as_long_as_the_call(raises: bool) -> None:
    alive: list[bool] = []

    class Token:
        pass

    def watch(is_over: bool, *_: object) -> Token | None:
        nonlocal last
        if is_over:
            alive.append(last() is not None)
            if raises:
                raise LateError
            return None
        token = Token()
        last = weakref.ref(token)
        return token

    last: Any = None
    wrapped: Any = _core.watched_call(lambda: alive.append(last() is not None), watch)
    with pytest.raises(LateError) if raises else contextlib.nullcontext():
        wrapped()
    assert alive == [True, False]


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
    assert named(connection=5, query=6) == {"connection": 5, "query": 6}
    assert seen == [
        (False, 7, 2, None, None, None),
        (True, 7, 2, None, None, (3, 1)),
        (False, 7, 0, None, None, None),
        (True, 7, 0, None, None, None),
        (False, None, None, 6, 5, None),
        (True, None, None, 6, 5, {"connection": 5, "query": 6}),
    ]


COVERAGE = "SELECT current_setting('profiling_coverage')"


@pytest.mark.parametrize("begins", ["before", "meanwhile"])
@pytest.mark.parametrize("by_method", [False, True])
@pytest.mark.repeats
def test_a_profiler_that_the_program_sets(
    begins: str, by_method: bool, connection: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its file, what it prints and its settings are the program's, also afterwards."""
    path = tmp_path / "own.json"

    def set_it() -> None:
        if by_method:
            connection.enable_profiling()
        connection.execute("PRAGMA enable_profiling='json'")
        connection.execute(f"PRAGMA profiling_output='{path}'")

    def profiled() -> list[Any]:
        connection.execute("SELECT a FROM t").fetchall()
        connection.execute("CREATE OR REPLACE TABLE u AS SELECT 1 AS a")
        connection.execute("INSERT INTO u VALUES (2)")
        said = path.read_text()
        path.unlink()
        return ["INSERT" in said, "CREATE_TABLE_AS" in said]

    set_it()
    bare, said = profiled(), capfd.readouterr()
    connection.execute("PRAGMA disable_profiling")
    if begins == "before":
        set_it()
    capfd.readouterr()
    with queryprof.profile():
        if begins == "meanwhile":
            connection.execute("SELECT 1").fetchall()
            assert is_on(connection)
            set_it()
            if by_method:
                capfd.readouterr()
        assert profiled() == bare
    assert capfd.readouterr() == said
    assert profiled() == bare
    assert connection.execute(SETTING).fetchall() == [("json",)]
    assert connection.execute(COVERAGE).fetchall() == [("SELECT",)]


def test_nothing_of_it_is_imported_unless_it_is_wanted(tmp_path: Path) -> None:
    program = (
        "import duckdb, sys, queryprof\n"
        "queryprof.install('t.qprof'); duckdb.execute('SELECT 1').fetchall()\n"
        "print(sorted(name for name in sys.modules if 'duckdb_' in name and 'queryprof' in name))"
    )
    for value, names in (("0", ["driver"]), ("1", ["driver", "profile", "profiler"])):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, OPERATORS_VARIABLE: value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{[f'queryprof.hooks.drivers.duckdb_{name}' for name in names]}\n"


WAYS = {
    "keyword": lambda c: c.execute(query="PRAGMA enable_profiling='json'"),
    "function": lambda c: duckdb.execute(query="PRAGMA enable_profiling='json'", connection=c),
    "statement": lambda c: c.execute(c.extract_statements("PRAGMA enable_profiling='json'")[0]),
    "call": lambda c: c.execute("CALL enable_profiling(format='json')"),
    "relation": lambda c: c.sql("FROM enable_profiling(format='json')").fetchall(),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.repeats
def test_each_way_to_set_it(way: Any, connection: Any, tmp_path: Path) -> None:
    try:
        way(duckdb.connect())
    except duckdb.Error:
        pytest.skip("not of this version")
    with queryprof.profile():
        connection.execute("SELECT a FROM t").fetchall()
        way(connection)
        connection.execute(f"SET profiling_output='{tmp_path}/own.json'")
    connection.execute("SELECT b FROM t").fetchall()
    assert connection.execute(SETTING).fetchall() == [("json",)]
    assert (tmp_path / "own.json").exists()


@pytest.mark.parametrize("call", ["execute('selec 1')", "execute(3)", "execute()", "execute('')"])
@pytest.mark.repeats
def test_what_is_open_stays_open_behind_a_call_that_fails(call: str, connection: Any) -> None:
    def after(recorded: bool) -> Any:
        own = duckdb.connect()
        own.execute("SELECT range FROM range(9)")
        assert own.fetchone() == (0,)
        with queryprof.profile() if recorded else contextlib.nullcontext():
            with contextlib.suppress(duckdb.Error, TypeError):
                eval(f"own.{call}")
            try:
                return own.fetchall()
            except duckdb.Error as error:
                return type(error)

    assert connection is not None
    assert after(True) == after(False)


def test_a_transaction_that_was_aborted(connection: Any) -> None:
    connection.begin()
    with queryprof.profile():
        connection.execute("SELECT a FROM t").fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT error('x')").fetchall()
    connection.rollback()
    assert not is_on(connection)
    with queryprof.profile():
        connection.execute("SELECT a FROM t").fetchall()
        connection.execute("SET lock_configuration = true")
    assert not is_on(connection)


def test_no_setting_but_that_is_changed(connection: Any) -> None:
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = connection.execute(settings).fetchall()
    with queryprof.profile():
        connection.execute("SELECT a FROM t").fetchall()
        assert connection.execute(COVERAGE).fetchall() == [("SELECT",)]
        connection.execute("SELECT a AS last FROM t").fetchall()
    assert [name for name, *_ in connection.description] == ["last"]
    assert connection.execute(settings).fetchall() == before


def test_a_profiler_that_the_program_switches_off_stays_off(connection: Any) -> None:
    with queryprof.profile() as recording:
        connection.execute("SELECT a FROM t").fetchall()
        connection.execute("PRAGMA disable_profiling")
        connection.execute("SELECT b FROM t").fetchall()
        assert not is_on(connection)
        connection.execute("CREATE TABLE profiles AS SELECT 1 AS profile")
    assert {one.statement for one in recording.profile.operators} == {"SELECT a FROM t"}


def test_a_table_of_profiles_is_a_table(connection: Any) -> None:
    connection.execute("CREATE TABLE profiles AS SELECT 1 AS profile")
    with queryprof.profile() as recording:
        connection.execute("SELECT profile FROM profiles").fetchall()
        connection.execute("SELECT a FROM t").fetchall()
    assert len({one.statement for one in recording.profile.operators}) == 2


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.repeats
def test_what_a_signals_handler_raises_meanwhile(call: int, connection: Any) -> None:
    """At any call of the driver's in the watcher: afterwards the profiler is off all the same."""
    from queryprof.hooks.drivers import duckdb_profiler

    calls: list[str] = []

    def handler(*_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # it is for once
        raise LateError

    def interrupted(function: Any) -> Any:
        def run(*arguments: object) -> object:
            calls.append("")
            if len(calls) == call:
                signal.raise_signal(signal.SIGALRM)
            return function(*arguments)

        return run

    class Interrupted(duckdb_profiler.Profiler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            for name in ("_execute", "_statements", "_information"):
                setattr(self, name, interrupted(getattr(self, name)))

    before = signal.signal(signal.SIGALRM, handler)
    raised = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb_profiler, "Profiler", Interrupted)
        with queryprof.profile():
            for _ in range(3):
                try:
                    connection.execute("SELECT a FROM t").fetchall()
                except LateError:
                    raised += 1
            calls.extend([""] * call)  # no more
    signal.signal(signal.SIGALRM, before)
    assert raised == 1
    assert not is_on(connection)
