"""PyMySQL and mysqlclient, with a real MariaDB."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from mariadb import is_installed, server

import queryprof
from conftest import by_operation, owned
from queryprof.hooks.drivers.pep249 import MYSQLCLIENT, PYMYSQL

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def socket() -> Iterator[str]:
    if not is_installed():
        pytest.skip("MariaDB's server is not installed")
    with server() as path:
        yield path


@pytest.mark.parametrize("driver", [PYMYSQL, MYSQLCLIENT], ids=lambda driver: driver.module)
@pytest.mark.repeats
def test_mysql(socket: str, driver: object) -> None:
    """Each call counts once, including the driver's calls of its own methods. Rows are tuples."""
    assert driver in (PYMYSQL, MYSQLCLIENT)
    known = PYMYSQL if driver is PYMYSQL else MYSQLCLIENT
    name = known.module.partition(".")[0]
    module = pytest.importorskip(name)
    home = importlib.import_module(known.module)
    cursors = importlib.import_module(f"{name}.cursors")
    before = owned(home, known)
    with queryprof.profile() as recording:
        assert owned(home, known) != before
        connection = module.connect(unix_socket=socket, user="root")
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS d")
        cursor.execute("USE d")
        cursor.execute("CREATE OR REPLACE TABLE t (id int, name text) ENGINE = InnoDB")
        pairs = [(number, str(number)) for number in range(10)]
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", pairs)
        cursor.executemany("UPDATE t SET name = %s WHERE id = %s", [("x", 1), ("y", 2)])
        cursor.execute("UPDATE t SET name = 'it''s' WHERE id < %s", (4,))
        cursor.execute("SELECT * FROM t")
        assert len(cursor.fetchall()) == 10
        with connection.cursor(cursors.SSCursor) as other:
            other.execute("SELECT name FROM t")
            assert other.fetchone()
            assert (len(other.fetchmany(2)), len(other.fetchall())) == (2, 7)
        with connection.cursor(cursors.SSDictCursor) as other:
            other.execute("SELECT id AS n FROM t")
            assert len(list(other)) == 10
        with pytest.raises(module.ProgrammingError):
            cursor.execute("SELECT * FROM missing")
        connection.commit()
        connection.begin()
        connection.rollback()
        connection.close()
    assert owned(home, known) == before
    assert by_operation(recording.profile) == {
        ("(connect)", "connect"): 1,
        ("CREATE DATABASE IF NOT EXISTS d", "execute"): 1,
        ("USE d", "execute"): 1,
        ("CREATE OR REPLACE TABLE t(id int, name text) ENGINE = InnoDB", "execute"): 1,
        ("INSERT INTO t VALUES (%s, %s)", "executemany"): 1,
        ("UPDATE t SET name = %s WHERE id = %s", "executemany"): 1,
        ("UPDATE t SET name = ? WHERE id < %s", "execute"): 1,
        ("SELECT * FROM t", "execute"): 1,
        ("SELECT * FROM t", "fetchall"): 1,
        ("SELECT name FROM t", "execute"): 1,
        ("SELECT name FROM t", "fetchone"): 1,
        ("SELECT name FROM t", "fetchmany"): 1,
        ("SELECT name FROM t", "fetchall"): 1,
        ("SELECT id AS n FROM t", "execute"): 1,
        ("SELECT id AS n FROM t", "next"): 11,
        ("SELECT * FROM missing", "execute"): 1,
        ("COMMIT", "commit"): 1,
        ("BEGIN", "begin"): 1,
        ("ROLLBACK", "rollback"): 1,
        ("(close)", "close"): 1,
    }
    assert {one: rows for one, rows in by_operation(recording.profile, "rows").items() if rows} == {
        ("INSERT INTO t VALUES (%s, %s)", "executemany"): 10,
        ("UPDATE t SET name = %s WHERE id = %s", "executemany"): 2,
        ("UPDATE t SET name = ? WHERE id < %s", "execute"): 4,
        ("SELECT * FROM t", "fetchall"): 10,
        ("SELECT name FROM t", "fetchone"): 1,
        ("SELECT name FROM t", "fetchmany"): 2,
        ("SELECT name FROM t", "fetchall"): 7,
        ("SELECT id AS n FROM t", "next"): 10,
    }
    assert len(recording.profile.errors) == 1


@pytest.mark.parametrize("name", ["pymysql", "MySQLdb"])
def test_calls_inside_of_others(socket: str, name: str) -> None:
    """Statements executed while executemany takes its values count separately, even with the same
    cursor. The driver's own code does not count.
    """
    module = pytest.importorskip(name)
    with queryprof.profile() as recording:
        connection = module.connect(unix_socket=socket, user="root")
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE IF NOT EXISTS d")
        cursor.execute("USE d")
        cursor.execute("CREATE OR REPLACE TABLE u (a int)")
        cursor.execute("CREATE OR REPLACE PROCEDURE p (x int) SELECT x UNION SELECT x + 1")

        def values() -> Iterator[tuple[int]]:
            for number in range(3):
                cursor.execute("SELECT %s + 1", (number,))
                yield cursor.fetchone()

        cursor.executemany("INSERT INTO u VALUES (%s)", values())
        cursor.execute("SELECT 11 AS before_it")
        cursor.fetchall()
        cursor.callproc("p", (3,))
        assert len(cursor.fetchall()) == 2
        cursor.nextset()
        cursor.execute(args=(5,), query="SELECT a FROM u WHERE a = %s")
        cursor.fetchall()
        connection.close()
    found, rows = by_operation(recording.profile), by_operation(recording.profile, "rows")
    assert found["SELECT %s + ?", "execute"] == 3
    assert rows["SELECT %s + ?", "fetchone"] == 3
    assert found["INSERT INTO u VALUES (%s)", "executemany"] == 1
    assert rows["SELECT ? AS before_it", "fetchall"] == 1
    assert (found["p", "execute"], rows["p", "fetchall"]) == (1, 2)
    assert found["SELECT a FROM u WHERE a = %s", "execute"] == 1
