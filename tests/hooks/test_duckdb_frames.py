"""DuckDB's own kinds of results: data frames, arrays, and relations, which are executed late."""

from __future__ import annotations

import json

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.report.json.report import json_report

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
    assert calls(recording) == {
        ("SELECT ? AS a", "execute"): 1,
        ("SELECT ? AS a", "fetchtable"): 1,
    }
    report = Report(recording.profile)
    assert json.loads("".join(json_report(report)))["rows"] is None
    assert report.ranking.bottlenecks[0].totals.rows_each is None


@pytest.mark.skipif(not hasattr(duckdb.DuckDBPyRelation, "to_df"), reason="an older DuckDB")
def test_a_relation_is_executed_when_it_is_fetched():
    """This includes the module's own connection. The test uses a new one, since it may have a
    result of another test.
    """
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
        ("SELECT ? AS b", "fetchtable"): 1,
    }


def test_a_relation_at_the_address_of_one_that_is_gone():
    """Its rows do not count for the earlier relation's statement."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
    with queryprof.profile() as recording:
        for _ in range(50):
            relation = connection.sql("SELECT a FROM t")
            assert len(relation.fetchall()) == 10
            del relation
            assert len(connection.table("t").project("a + 1").fetchall()) == 10
    found = calls(recording)
    assert found["SELECT a FROM t", "execute"] == found["SELECT a FROM t", "fetchall"] == 50
    assert found["(unknown)", "fetchall"] == 50


def test_a_relation_that_lives_longer_than_the_recording():
    connection = duckdb.connect()
    with queryprof.profile():
        relation = connection.sql("SELECT 42 AS a")
    with queryprof.profile() as recording:
        assert relation.fetchall() == [(42,)]
        del relation
        assert connection.sql("SELECT 43 AS b").fetchall() == [(43,)]
    assert calls(recording)["SELECT ? AS b", "fetchall"] == 1


def test_a_relation_made_of_another_one_has_no_statement_that_is_known():
    connection = duckdb.connect()
    with queryprof.profile() as recording:
        relation = connection.sql("SELECT 42 AS a").filter("a > 1")
        assert relation.fetchall() == [(42,)]
    assert calls(recording)["(unknown)", "fetchall"] == 1
    assert "the statement of 1 calls is unknown" in str(recording)
