"""psycopg2, whose types are in C, with a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import queryprof
from conftest import by_operation, owned
from queryprof.hooks.drivers.pep249 import PSYCOPG2

pytestmark = pytest.mark.once


@pytest.mark.slow
def test_psycopg2(postgresql: str) -> None:
    """Calls, rows and errors are recorded, and the driver's C types are unchanged."""
    psycopg2 = pytest.importorskip("psycopg2")
    from psycopg2 import extras, sql

    before = owned(psycopg2, PSYCOPG2)
    with queryprof.profile() as recording:
        assert owned(psycopg2, PSYCOPG2) != before
        connection = psycopg2.connect(postgresql)
        cursor = connection.cursor()
        cursor.execute("CREATE TEMP TABLE t (id int, name text)")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(n, str(n)) for n in range(10)])
        extras.execute_values(cursor, "INSERT INTO t (id) VALUES %s", [(n,) for n in range(3)])
        cursor.execute("UPDATE t SET name = 'x' WHERE id < %(id)s", {"id": 4})
        cursor.execute(sql.SQL("SELECT {} FROM t").format(sql.Identifier("id")))
        assert len(cursor.fetchall()) == 13
        cursor.execute("SELECT name FROM t")
        assert len(list(cursor)) == 13
        with connection.cursor(cursor_factory=extras.RealDictCursor) as other:
            other.execute("SELECT $x$it's$x$ AS it")
            assert other.fetchone() == {"it": "it's"}
        with connection.cursor("named") as named:
            named.execute("SELECT id, name FROM t")
            assert len(named.fetchmany(3)) == 3
        with pytest.raises(psycopg2.errors.UndefinedTable):
            cursor.execute("SELECT * FROM missing")
        connection.rollback()
        with connection:
            pass
        connection.close()
    assert owned(psycopg2, PSYCOPG2) == before
    found = by_operation(recording.profile)
    assert found == {
        ("(connect)", "connect"): 1,
        ("CREATE TEMP TABLE t(id int, name text)", "execute"): 1,
        ("INSERT INTO t VALUES (%s, %s)", "executemany"): 1,
        ("INSERT INTO t(id) VALUES (?)", "execute"): 1,
        ("UPDATE t SET name = ? WHERE id < %(id)s", "execute"): 1,
        ('SELECT "id" FROM t', "execute"): 1,
        ('SELECT "id" FROM t', "fetchall"): 1,
        ("SELECT name FROM t", "execute"): 1,
        ("SELECT name FROM t", "next"): 14,
        ("SELECT ? AS it", "execute"): 1,
        ("SELECT ? AS it", "fetchone"): 1,
        ("SELECT id, name FROM t", "execute"): 1,
        ("SELECT id, name FROM t", "fetchmany"): 1,
        ("SELECT * FROM missing", "execute"): 1,
        ("ROLLBACK", "rollback"): 1,
        ("COMMIT", "commit"): 1,
        ("(close)", "close"): 1,
    }
    rows = by_operation(recording.profile, "rows")
    assert rows["INSERT INTO t VALUES (%s, %s)", "executemany"] == 10
    assert rows["UPDATE t SET name = ? WHERE id < %(id)s", "execute"] == 7
    assert rows['SELECT "id" FROM t', "fetchall"] == 13
    assert rows["SELECT name FROM t", "next"] == 13
    (error,) = recording.profile.errors
    assert error.exception == "psycopg2.errors.UndefinedTable"
    assert {one.vm_steps for one in recording.profile.aggregates} == {0}
    assert {one.counted for one in recording.profile.aggregates} == {0}


def test_sqlalchemy_over_psycopg2(postgresql: str) -> None:
    pytest.importorskip("psycopg2")
    sqlalchemy = pytest.importorskip("sqlalchemy")

    with queryprof.profile() as recording:
        import psycopg2

        engine = sqlalchemy.create_engine(
            "postgresql+psycopg2://", creator=lambda: psycopg2.connect(postgresql)
        )
        with engine.begin() as connection:
            found = connection.execute(
                sqlalchemy.text("SELECT n FROM generate_series(1, 7) AS n WHERE n > :least"),
                {"least": 2},
            )
            assert len(found.fetchall()) == 5
        engine.dispose()
    rows = by_operation(recording.profile, "rows")
    statement = "SELECT n FROM generate_series(?, ?) AS n WHERE n > %(least)s"
    assert rows[statement, "fetchall"] == 5
    assert by_operation(recording.profile)[statement, "execute"] == 1


def test_values_that_the_same_cursor_fetches(postgresql: str) -> None:
    """A generator of the program uses the same cursor as the executemany that takes its values."""
    psycopg2 = pytest.importorskip("psycopg2")
    with queryprof.profile() as recording:
        connection = psycopg2.connect(postgresql)
        cursor = connection.cursor()
        cursor.execute("CREATE TEMP TABLE u (a int)")

        def values() -> Iterator[tuple[int]]:
            for number in range(3):
                cursor.execute("SELECT %s + 1", (number,))
                yield cursor.fetchone()

        cursor.executemany("INSERT INTO u VALUES (%s)", values())
        connection.close()
    found, rows = by_operation(recording.profile), by_operation(recording.profile, "rows")
    assert found["SELECT %s + ?", "execute"] == 3
    assert rows["SELECT %s + ?", "fetchone"] == 3
    assert found["INSERT INTO u VALUES (%s)", "executemany"] == 1
