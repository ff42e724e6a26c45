"""Attaching changes nothing that a program can observe, and detaching restores everything."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import queryprof
from conftest import by_operation, look
from queryprof.core import _core
from queryprof.errors import SessionError
from queryprof.hooks.drivers.sqlite3_driver import BLOB_METHODS, CONNECTION_METHODS, CURSOR_METHODS

OWNERS = (
    (sqlite3.Cursor, CURSOR_METHODS),
    (sqlite3.Connection, CONNECTION_METHODS),
    (sqlite3.Blob, BLOB_METHODS),
)


def test_types_and_method_objects_stay_the_same() -> None:
    """Every type, method object, doc and signature is identical while attached, and after."""
    before = {(t, name): t.__dict__.get(name) for t, names in OWNERS for name in names}
    facts = {key: described(method) for key, method in before.items()}
    with queryprof.profile():
        for (owner, name), method in before.items():
            assert owner.__dict__.get(name) is method
        assert facts == {key: described(method) for key, method in before.items()}
    assert all(t.__dict__.get(name) is method for (t, name), method in before.items())


def described(method: object) -> tuple[object, ...]:
    names = ("__name__", "__qualname__", "__doc__", "__text_signature__", "__objclass__")
    return (repr(method), *(getattr(method, name, None) for name in names))


def test_what_was_taken_before_is_measured_and_put_back() -> None:
    """Bound methods, cursors and subclasses from before install are measured until detaching."""

    class Cursor(sqlite3.Cursor):
        pass

    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor(Cursor)
    execute, fetch = cursor.execute, cursor.fetchone
    with queryprof.profile() as recording:

        class Late(sqlite3.Cursor):
            pass

        execute("SELECT 1")
        fetch()
        assert list(connection.cursor(Late).execute("SELECT 2")) == [(2,)]
    assert by_operation(recording.profile) == {
        ("SELECT ?", "execute"): 2,
        ("SELECT ?", "fetchone"): 1,
        ("SELECT ?", "next"): 2,
    }
    with queryprof.profile() as nothing:
        pass
    execute("SELECT 3")
    assert list(connection.cursor(Late).execute("SELECT 4")) == [(4,)]
    assert nothing.profile.aggregates == ()
    connection.close()


def test_every_operation_of_sqlite3_is_there(tmp_path: Path) -> None:
    """Each method through which the standard library reaches the database has its own operation."""
    with queryprof.profile() as recording:
        connection = sqlite3.connect(tmp_path / "a.db")
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, b"0123456789")] * 3)
        connection.executescript("SELECT 1; SELECT 2;")
        connection.commit()
        connection.rollback()
        with connection:
            pass
        with pytest.raises(KeyError), connection:
            raise KeyError
        cursor = connection.cursor()
        cursor.execute("SELECT a FROM t")
        cursor.fetchone()
        cursor.fetchmany(1)
        cursor.fetchall()
        next(cursor, None)
        cursor.executemany("DELETE FROM t WHERE a = ?", [(7,)])
        cursor.executescript("SELECT 3;")
        with connection.blobopen("t", "b", 1) as blob:
            blob.read(2)
            blob.write(b"x")
            assert blob[0:2] == b"01"
            blob[5] = 1
        target = sqlite3.connect(":memory:")
        connection.backup(target)
        target.deserialize(connection.serialize())
        target.close()
        connection.close()
    assert by_operation(recording.profile) == {
        ("(connect)", "connect"): 2,
        ("CREATE TABLE t(a, b)", "execute"): 1,
        ("INSERT INTO t VALUES (?, ?)", "executemany"): 1,
        ("SELECT ?", "executescript"): 2,
        ("COMMIT", "commit"): 2,
        ("ROLLBACK", "rollback"): 2,
        ("SELECT a FROM t", "execute"): 1,
        ("SELECT a FROM t", "fetchone"): 1,
        ("SELECT a FROM t", "fetchmany"): 1,
        ("SELECT a FROM t", "fetchall"): 1,
        ("SELECT a FROM t", "next"): 1,
        ("DELETE FROM t WHERE a = ?", "executemany"): 1,
        ("(blob)", "blob open"): 1,
        ("(blob)", "blob read"): 2,
        ("(blob)", "blob write"): 2,
        ("(backup)", "backup"): 1,
        ("(serialize)", "serialize"): 1,
        ("(deserialize)", "deserialize"): 1,
        ("(close)", "close"): 2,
    }


def test_connections_by_any_constructor_count_once() -> None:
    """connect(), the type itself, and a subclass that calls the base count as one connect each."""

    class Connection(sqlite3.Connection):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    with queryprof.profile() as recording:
        made = [
            sqlite3.connect(":memory:"),
            sqlite3.Connection(":memory:"),
            sqlite3.connect(":memory:", factory=Connection),
            Connection(":memory:"),
        ]
        for connection in made:
            connection.close()
    assert by_operation(recording.profile)["(connect)", "connect"] == 4


def test_exceptions_and_tracebacks_are_the_programs_own() -> None:
    """The exception is the same, and no frame of queryprof is in the traceback."""

    def fail() -> list[str]:
        connection = sqlite3.connect(":memory:")
        try:
            connection.execute("SELECT 1 FROM nowhere")
        except sqlite3.OperationalError as error:
            return [str(error), *traceback.format_tb(error.__traceback__)]
        finally:
            connection.close()
        return []

    bare = fail()
    with queryprof.profile() as recording:
        assert fail() == bare
    errors = recording.profile.errors
    assert [(e.exception, e.count) for e in errors] == [("sqlite3.OperationalError", 1)]


def test_a_warnings_line_is_the_programs() -> None:
    """Stacklevel counts Python frames, and queryprof adds none."""
    connection = sqlite3.connect(":memory:")
    connection.create_function("warn", 0, lambda: warnings.warn("look", stacklevel=2))
    with queryprof.profile(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        connection.execute("SELECT warn()").fetchall()
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    connection.close()
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]


def test_no_reference_is_lost_or_kept() -> None:
    """Recording keeps no object of the program alive except short SQL texts and code."""

    class Parameter(int):
        pass

    connection = sqlite3.connect(":memory:")
    with queryprof.profile():
        for value in range(200):
            connection.execute("SELECT ?", (Parameter(value),)).fetchall()
        gc.collect()
        assert not [o for o in gc.get_objects() if type(o) is Parameter]
    connection.close()


def test_the_flusher_is_not_seen() -> None:
    """There is no additional thread in threading or in the interpreter's count."""
    before = threading.active_count(), len(sys._current_frames())
    with queryprof.profile():
        assert before == (threading.active_count(), len(sys._current_frames()))


def test_placed_probe_measures_python_types() -> None:
    """If no function pointer can be replaced, a probe object replaces the function."""

    class Driver:
        def execute(self, sql: str, parameters: tuple[int, ...] = ()) -> str:
            """Doc."""
            return sql.lower()

    original = Driver.__dict__["execute"]
    with queryprof.profile() as recording:
        attachment = _core.attach(
            Driver, "execute", _core.operation_names().index("execute"), None, False
        )
        assert Driver().execute("SELECT 1") == "select 1"
        assert Driver().execute(sql="SELECT 2") == "select 2"
        assert Driver.execute(Driver(), "SELECT 3", (1,)) == "select 3"
        assert Driver.execute.__doc__ == "Doc."
        assert str(inspect.signature(Driver.execute)) == str(inspect.signature(original))
        with pytest.raises(TypeError):
            Driver().execute()  # type: ignore[call-arg]
        _core.detach(attachment)
        _core.detach(attachment)
        Driver().execute("SELECT 4")
    assert Driver.__dict__["execute"] is original
    assert by_operation(recording.profile) == {
        ("SELECT ?", "execute"): 3,
        ("(unknown)", "execute"): 1,
    }


def test_attach_refuses_what_is_no_function() -> None:
    """A missing or uncallable attribute is an error, and nothing changes."""

    class Driver:
        value = 1

    with pytest.raises(KeyError):
        _core.attach(Driver, "missing", 0, None, False)
    with pytest.raises(TypeError, match="is no function"):
        _core.attach(Driver, "value", 0, None, False)
    with pytest.raises(ValueError, match="no operation 99"):
        _core.attach(Driver, "value", 99, None, False)
    assert Driver.value == 1


def test_install_is_light(tmp_path: Path) -> None:
    """The program's process imports neither click nor rich nor apsw, nor anything slow."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "before = set(sys.modules)\n"
        "import queryprof\n"
        "queryprof.install('x.qprof')\n"
        "heavy = {'click', 'rich', 'apsw', 'dataclasses', 'typing', 'inspect', 'asyncio',"
        " 'sqlite3', '_sqlite3', 'json', 're', 'contextlib', 'collections', 'functools',"
        " 'struct', 'operator', 'importlib', 'warnings'}\n"
        "loaded = (heavy & set(sys.modules)) - before\n"
        "assert not loaded, loaded\n"
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_import_that_ends_after_the_recording(tmp_path: Path) -> None:
    """Its module is not changed."""
    program = tmp_path / "program.py"
    program.write_text(
        "import importlib.util, sys\n"
        "import queryprof\n"
        "queryprof.install('x.qprof')\n"
        "spec = importlib.util.find_spec('_sqlite3')\n"
        "queryprof.uninstall()\n"
        "assert '_sqlite3' in sys.modules  # for the trace\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "assert type(vars(module.Cursor)['execute']).__name__ == 'method_descriptor'\n"
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def blocked_signals() -> Iterator[int]:
    """Return the signal mask of each of queryprof's threads."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "queryprof\n":
            status = (task / "status").read_text()
            yield int(status.split("SigBlk:")[1].split()[0], 16)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_our_threads_take_no_signals() -> None:
    """A signal delivered to another thread would not interrupt the main thread's sleep."""
    blocked: list[int] = []

    async def looks() -> None:
        until = time.monotonic() + 60
        await asyncio.sleep(0)
        while not blocked and time.monotonic() < until:  # it sets its name when it runs
            blocked.extend(blocked_signals())

    with queryprof.profile():
        asyncio.run(looks())
    assert blocked
    interrupt_and_terminate = 1 << 1 | 1 << 14
    assert all(mask & interrupt_and_terminate == interrupt_and_terminate for mask in blocked)


def test_a_python_without_gil_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is attached, so no count is wrong. One sentence says what to do."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(SessionError, match=r"miscounted; set PYTHON_GIL=1 to record them$"):
        queryprof.install("x.qprof")
    assert not queryprof.is_installed()
    connection = sqlite3.connect(":memory:")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()
    assert not Path("x.qprof").exists()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    queryprof.install("x.qprof")
    assert queryprof.is_installed()
    queryprof.uninstall()


def hooked() -> dict[str, object]:
    """Return everything that a hook may replace in the installed libraries, by name."""
    import importlib

    from queryprof.hooks import executors
    from queryprof.hooks.drivers import own_sqlite
    from queryprof.hooks.drivers.pep249 import DUCKDB, LIBSQL, PSYCOPG

    own = [
        own_sqlite.OwnSqliteHook(name)
        for name in ("apsw", "pysqlite3._sqlite3", "sqlcipher3._sqlite3", "sqlean._sqlite3")
    ]
    found = {}
    owners: list[tuple[str, str, tuple[str, ...]]] = [
        (driver.module, name, tuple(methods))
        for driver in (PSYCOPG, DUCKDB, LIBSQL, *(hook.driver for hook in own))
        for name, methods in driver.types.items()
    ]
    hooks = [executors.ExecutorHook(module) for module in executors.HANDOVERS]
    owners += [(h.module, o.owner, (o.method,)) for h in hooks for o in h.handovers]
    for module_name, owner_name, methods in owners:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        if owner_name.endswith("?") and not hasattr(module, owner_name.rstrip("?")):
            continue
        owner = getattr(module, owner_name.rstrip("?"))
        for method in methods:
            found[f"{module_name}.{owner_name}.{method}"] = vars(owner).get(method)
    return found


def test_uninstall_puts_everything_back() -> None:
    """Types and functions of every driver and executor are the original objects, twice."""
    before = hooked()
    assert len(before) > 20
    for _ in range(2):
        queryprof.install("x.qprof")
        during = hooked()
        queryprof.uninstall()
        after = hooked()
        assert all(after[name] is before[name] for name in before)
        assert not any(look(found)[1] for found in after.values())
    # A C method whose function is exchanged is the same object while it is measured.
    same = {
        name.partition(".")[0]
        for name in before
        if during[name] is before[name] is not None
        and not isinstance(before[name], FunctionType | classmethod)
    }
    assert same <= {"apsw", "psycopg", "pysqlite3", "sqlcipher3", "sqlean", "libsql"}, same
