"""The schema of an untrusted database is read, and nothing in it is executed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from queryprof.program.database_schema import read_schema

pytestmark = pytest.mark.once


def test_rows_of_tables_are_counted_and_none_of_views(tmp_path: Path) -> None:
    """A view in the statistics would be executed, for minutes in one step."""
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); CREATE INDEX t_a ON t (a); ANALYZE;
        CREATE VIEW v AS SELECT 1 AS x WHERE instr(hex(zeroblob(50000000)), hex(zeroblob(25000000)) || '1');
        DELETE FROM sqlite_stat1;
        INSERT INTO sqlite_stat1 VALUES
            ('t', 't_a', '2 1'), ('v', NULL, '1'), ('missing', NULL, '1'), ('t', x'00', 7), (NULL, NULL, NULL),
            ('t', 't_a', '99999999999999999999999'), ('t', 't_a', '-5 x');
        """)
    db.commit()
    db.close()
    schema = read_schema(str(path))
    assert schema.rows == {"t": 2}
    assert schema.analyzed_rows["t"] == 2
    assert len(schema.created) == 3


def test_columns_that_are_computed_are_read_and_not_computed(tmp_path: Path) -> None:
    """SQLite considers some of their functions unsafe in a file: reading a schema calls none."""
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE t (a TEXT, kind TEXT AS (json_extract(a, '$.kind')) VIRTUAL);
        CREATE INDEX t_kind ON t (kind);
        INSERT INTO t (a) VALUES ('{"kind": "x"}'), ('{}');
        CREATE TABLE other (a); CREATE INDEX other_a ON other (a); INSERT INTO other VALUES (1); ANALYZE other;
        INSERT INTO sqlite_stat1 VALUES ('t', 't_kind', '1 1');
        ALTER TABLE t ADD COLUMN slow AS (instr(hex(zeroblob(50000000)), hex(zeroblob(25000000)) || a));
        """)
    db.commit()
    db.close()
    schema = read_schema(str(path))
    assert schema.rows == {"t": 2, "other": 1}
    assert [index.name for index in schema.indexes] == ["other_a", "t_kind"]


def test_views_of_views_are_not_prepared(tmp_path: Path) -> None:
    """Each view has the one before twice: the last one has 2^40 parts."""
    path = tmp_path / "views.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a)")
        db.execute("CREATE VIEW v0 AS SELECT a FROM t")
        for n in range(40):
            both = f"SELECT a FROM v{n} UNION ALL SELECT a FROM v{n}"
            db.execute(f"CREATE VIEW v{n + 1} AS {both}")
        db.execute("CREATE INDEX t_a ON t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        db.execute("ANALYZE")
        db.commit()
    schema = read_schema(str(path))
    assert (schema.rows, [one.name for one in schema.indexes]) == ({"t": 1}, ["t_a"])
