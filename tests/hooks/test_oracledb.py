"""oracledb, without an Oracle: a refused connection, and unchanged types."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import queryprof
from conftest import by_operation, owned
from queryprof.hooks.drivers.pep249 import ORACLEDB

pytestmark = pytest.mark.once


def test_a_refused_connection_is_measured() -> None:
    oracledb = pytest.importorskip("oracledb")
    before = owned(oracledb, ORACLEDB)
    with queryprof.profile() as recording:
        changed = owned(oracledb, ORACLEDB)
        assert {name for name in before if before[name] is not changed[name]} == {
            name for name in before if before[name] is not None
        }
        with pytest.raises(oracledb.Error):
            oracledb.connect(user="x", password="y", dsn="127.0.0.1:1/none")
    assert owned(oracledb, ORACLEDB) == before
    assert by_operation(recording.profile) == {("(connect)", "connect"): 1}
    (error,) = recording.profile.errors
    assert error.exception.startswith("oracledb.")


def test_oracle_s_quotes_are_kept_out(tmp_path: Path) -> None:
    """Only Oracle knows where q'[it's]' ends, and what brackets mean. Nothing after it is kept."""
    oracledb = pytest.importorskip("oracledb")

    class Driver(oracledb.Cursor):  # type: ignore[misc]
        def __init__(self) -> None: ...

    texts = (
        "SELECT q'[it's SECRETa]', 'SECRETb' FROM dual",
        "SELECT nq'{x'SECRETc}', 'SECRETd' FROM dual",
        "SELECT 1 FROM dual WHERE a = Q'!'SECRETe'!' AND b = 'SECRETf'",
        "SELECT [Customer's Name], 'Ann SECRETg Smith' FROM t",
        'SELECT [5" pipe] FROM t WHERE x = "SECRETh" AND y = \'SECRETi\'',
        "SELECT ARRAY['SECRETj', 'x'], 'SECRETk'",
    )
    trace = tmp_path / "x.qprof"
    with queryprof.profile(trace) as recording:
        for text in texts:
            with contextlib.suppress(Exception):
                Driver().execute(text)
    assert sum(one.count for one in recording.profile.aggregates) == len(texts)
    assert b"SECRET" not in trace.read_bytes()
