"""DuckDB's own ways to a result: data frames, arrays, and relations, which are executed late."""

from __future__ import annotations

import pytest

import queryprof

duckdb = pytest.importorskip("duckdb")


def calls(recording):
    return {
        (one.statement, one.operation): one.count
        for one in recording.profile.aggregates
        if one.count
    }


@pytest.mark.parametrize("way", ["df", "fetchdf", "fetchnumpy"])
def test_a_frame_is_a_fetch_of_its_statement(way):
    pytest.importorskip("numpy")
    pytest.importorskip("pandas")
    connection = duckdb.connect()
    with queryprof.profile() as recording:
        getattr(connection.execute("SELECT 42 AS a"), way)()
    assert calls(recording) == {("SELECT ? AS a", "execute"): 1, ("SELECT ? AS a", "fetchall"): 1}


@pytest.mark.skipif(not hasattr(duckdb.DuckDBPyRelation, "to_df"), reason="an older DuckDB")
def test_a_relation_is_executed_when_it_is_fetched():
    """Also of the module's own connection: a new one, as it may have a result of another test."""
    pytest.importorskip("pandas")
    connection = duckdb.connect()
    duckdb.set_default_connection(duckdb.connect())
    with queryprof.profile() as recording:
        relation = connection.sql("SELECT 42 AS a")
        assert relation.fetchall() == [(42,)]
        assert duckdb.query("SELECT 43 AS b").to_df().b.tolist() == [43]
        assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert calls(recording) == {
        ("SELECT ? AS a", "execute"): 1,
        ("SELECT ? AS a", "fetchall"): 1,
        ("SELECT ? AS b", "execute"): 1,
        ("SELECT ? AS b", "fetchall"): 1,
    }


def test_a_relation_made_of_another_one_has_no_statement_that_is_known():
    connection = duckdb.connect()
    with queryprof.profile() as recording:
        relation = connection.sql("SELECT 42 AS a").filter("a > 1")
        assert relation.fetchall() == [(42,)]
    assert calls(recording)["(unknown)", "fetchall"] == 1
    assert "the statement of 1 calls is unknown" in str(recording)
