"""The command `fleet`: which files and rows it reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from fleet.fleets import READ, SLOW, Work, add_host

from conftest import Run

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

from queryprof.fleet.duck import Engine  # noqa: E402  needs DuckDB
from queryprof.fleet.store import directory_place, read_store  # noqa: E402


def test_it_reads_no_other_file(tmp_path: Path) -> None:
    add_host(Path("out"), "h", {READ: Work(1, 10)})
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    engine = Engine(read_store([directory_place("out")]))
    for text in (
        f"SELECT * FROM read_text('{secret}')",
        f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
        f"ATTACH '{tmp_path}/other.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            engine._connection.execute(text)
    engine.close()
    assert not (tmp_path / "written.csv").exists()


@pytest.mark.slow
def test_names_are_values(queryprof: Run) -> None:
    hostile = "'; DROP TABLE aggregate; --"
    add_host(Path("out"), hostile, {READ: Work(1, 10)}, service=hostile, version=hostile)
    add_host(Path("out"), "h", {SLOW: Work(1, 10)}, service="0123")
    for name in ("host", "service", "version"):
        found = json.loads(
            queryprof(
                "fleet", "report", "out", "--where", f"{name}={hostile}", "--format", "json"
            ).stdout
        )
        assert [one["statement"] for one in found] == [READ]
    found = json.loads(
        queryprof("fleet", "report", "out", "--where", "service=0123", "--format", "json").stdout
    )
    assert [one["statement"] for one in found] == [SLOW]
    result = queryprof("fleet", "report", "out", "--where", "host=' OR 1=1 --")
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        "no recording matches the selection; there are recordings from 2026-11-01 00:00"
        in result.stderr
    )


@pytest.mark.slow
def test_a_selection(queryprof: Run) -> None:
    for day in range(3):
        add_host(Path("out"), f"h{day}", {READ: Work(10 + day, 10)}, version=f"v{day}", day=day)

    def calls(*arguments: str) -> float:
        found = json.loads(
            queryprof("fleet", "report", "out", "--format", "json", *arguments).stdout
        )
        return sum(one["calls"] for one in found)

    assert calls() == 33
    assert calls("--during", "2026-11-02") == 23
    assert calls("--during", "..2026-11-02") == 10
    assert calls("--during", "2026-11-02T00:00..2026-11-03") == 11
    assert calls("--where", "host=h2") == calls("--where", "version=v2") == 12
    unknown = queryprof("fleet", "compare", "v1", "v9", "out")
    assert unknown.returncode == 2
    assert "no version 'v9'; known versions: v0, v1, v2" in unknown.stderr
    for when in ("tomorrow", "7x", "", "99999999999d", "2026-13-01", "..", "7d..x"):
        result = queryprof("fleet", "report", "out", "--during", when)
        assert (result.returncode, result.stdout) == (2, "")
        assert "Traceback" not in result.stderr


def test_files_that_cannot_be_read(queryprof: Run) -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    (whole,) = Path("out", "aggregate").rglob("*.parquet")
    content = whole.read_bytes()
    whole.with_name("cut.parquet").write_bytes(content[: len(content) // 2])
    whole.with_name("none.parquet").write_bytes(b"text")
    whole.with_name(".unfinished.new").write_bytes(b"text")
    import pyarrow as pa
    import pyarrow.parquet as pq

    later = pa.table({"a": [1]}).replace_schema_metadata({"queryprof.schema": "2"})
    pq.write_table(later, whole.with_name("later.parquet"))
    pq.write_table(pa.table({"a": [1]}), whole.with_name("other.parquet"))
    result = queryprof("fleet", "report", "out", "--format", "json")
    assert result.returncode == 1
    assert [one["calls"] for one in json.loads(result.stdout)] == [10]
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("queryprof: skipped: out/aggregate/") for line in lines)
    assert "later.parquet: has schema version 2; this queryprof reads version 1" in result.stderr
    empty = queryprof("fleet", "report", "nowhere")
    assert empty.returncode == 2
    Path("empty").mkdir()
    empty = queryprof("fleet", "report", "empty")
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "empty: no fleet data; create it with" in empty.stderr


def test_a_repeated_window_is_reported(queryprof: Run) -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    (whole,) = Path("out", "aggregate").rglob("*.parquet")
    shutil.copy(whole, whole.with_name("copy.parquet"))
    result = queryprof("fleet", "report", "out", "--format", "json")
    assert (
        "1 window is counted more than once: it is in several files, or a host's clock was set back"
        in result.stderr
    )
    assert [one["calls"] for one in json.loads(result.stdout)] == [20]


def test_options_of_other_questions_are_refused(queryprof: Run) -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    assert queryprof("fleet", "outliers", "out", "--by", "host").returncode == 2
    assert queryprof("fleet", "report", "out", "--fail-on", "time").returncode == 2


def test_without_duckdb(queryprof: Run) -> None:
    Path("without").mkdir()
    Path("without", "duckdb.py").write_text("raise ModuleNotFoundError(name='duckdb')")
    result = queryprof("fleet", "report", "out", env={"PYTHONPATH": "without"})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "queryprof: duckdb is not installed; in a clone of queryprof, run: pip install '.[fleet]'\n"
    )


def calls(queryprof: Run, *arguments: str) -> float:
    result = queryprof("fleet", "report", *arguments, "--format", "json")
    return sum(one["calls"] for one in json.loads(result.stdout))


@pytest.mark.slow
def test_names_of_directories_mean_nothing(queryprof: Run) -> None:
    """They are not read as columns (KEY=VALUE) or as patterns, and no directory counts twice."""
    inside = Path("version=9", "host=z", "buckets=1")
    add_host(inside, "a", {READ: Work(10, 10)}, version="1")
    add_host(inside, "b", {READ: Work(10, 10)}, version="1")
    assert calls(queryprof, str(inside), "--where", "version=1") == 20
    assert calls(queryprof, str(inside), "--where", "host=a") == 10
    assert calls(queryprof, str(inside), f"{inside}/") == 20
    Path("link").symlink_to(inside)
    assert calls(queryprof, "link", str(inside)) == 20
    add_host(Path("x[1]"), "a", {READ: Work(10, 10)})
    result = queryprof("fleet", "report", "x[1]")
    assert (result.returncode, result.stdout) == (2, "")
    assert "has one of * ? [ ] in its name" in result.stderr


@pytest.mark.parametrize("name", ["é" * 200, "x" * 300, "123", "..", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.repeats
def test_any_name_of_a_service_can_be_chosen(queryprof: Run, name: str) -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)}, service=name)
    add_host(Path("out"), "h", {READ: Work(5, 10)}, service="other")
    assert calls(queryprof, "out", "--where", f"service={name}") == 10
    assert calls(queryprof, "out") == 15


def test_what_is_no_file_or_of_other_columns(queryprof: Run) -> None:
    import pyarrow.parquet as pq

    add_host(Path("out"), "h", {READ: Work(10, 10)})
    (whole,) = Path("out", "aggregate").rglob("*.parquet")
    os.mkfifo(whole.with_name("pipe.parquet"))
    table = pq.ParquetFile(whole).read()
    texts = table.set_column(
        table.schema.get_field_index("count"), "count", table["count"].cast("string")
    )
    pq.write_table(texts, whole.with_name("texts.parquet"))
    pq.write_table(table.drop_columns(["self_ns"]), whole.with_name("without.parquet"))
    result = queryprof("fleet", "report", "out", "--format", "json")
    assert result.returncode == 1
    assert "texts.parquet: its column count is missing, or of another type" in result.stderr
    assert "without.parquet: its column self_ns is missing" in result.stderr
    assert [one["calls"] for one in json.loads(result.stdout)] == [10]


@pytest.mark.slow
def test_figures_that_are_none(queryprof: Run) -> None:
    """The output has no traceback, and its JSON is valid."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    add_host(Path("out"), "h", {READ: Work(10, 0)})
    (whole,) = Path("out", "aggregate").rglob("*.parquet")
    table = pq.ParquetFile(whole).read()
    place = table.schema.get_field_index("execution_sum_sq_ns2")
    table = table.set_column(place, "execution_sum_sq_ns2", pa.array([float("inf")]))
    pq.write_table(table, whole)
    for question in ("report", "outliers", "trend", "findings"):
        result = queryprof("fleet", question, "out")
        assert result.returncode == 0, result.stderr
        document = queryprof("fleet", question, "out", "--format", "json").stdout
        assert "Infinity" not in document
        json.loads(document)


@pytest.mark.slow
def test_a_merged_trace_reports_what_is_missing(queryprof: Run) -> None:
    from collect.test_collapse import processes

    processes("a.qprof", 1, host="a", version="1")
    processes("b.qprof", 1, host="b", version="2")
    assert queryprof("merge", "all.qprof", "a.qprof", "b.qprof").returncode == 0
    result = queryprof("fleet", "compare", "1", "2", "all.qprof")
    text = " ".join((result.stdout + result.stderr).split())
    assert "all.qprof: contains several hosts or versions: its spans, plans and findings" in text
    assert "not checked: counts: no spans of both versions" in text
    assert "not checked: plans: no plans of both versions" in text
    assert "not checked: time: fewer than 8 hosts" in text
