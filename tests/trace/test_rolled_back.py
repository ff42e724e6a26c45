"""A trace after a transaction that failed."""

from __future__ import annotations

import pytest

from queryprof.trace.store import TraceStore

pytestmark = pytest.mark.once


def test_rows_that_were_rolled_back_have_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore("x.qprof")
    with store.transaction():
        first = store.id("statement", "SELECT 1", None, "sqlite")
    with monkeypatch.context() as patch:
        patch.setattr(store, "remove_surplus", lambda: 1 / 0)  # when the rows are written
        with pytest.raises(ZeroDivisionError), store.transaction():
            store.id("statement", "SELECT 2", None, "sqlite")
    with store.transaction():
        third = store.id("statement", "SELECT 2", None, "sqlite")
        assert store.id("statement", "SELECT 1", None, "sqlite") == first
    rows = dict(store.connection.execute("SELECT id, text FROM statement"))
    assert rows == {first: "SELECT 1", third: "SELECT 2"}
    store.close()
