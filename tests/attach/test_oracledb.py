"""oracledb, without an Oracle: a connection that is refused, and types that are as before."""

from __future__ import annotations

import pytest
from attach.test_drivers import owned

import queryprof
from conftest import by_operation
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
