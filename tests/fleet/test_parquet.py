"""Parquet files of traces: they have every sum and every text unchanged, and no private data."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collect.test_collapse import write_random
from hypothesis import given, settings
from hypothesis import strategies as st

import queryprof as package
from conftest import EXAMPLES, Run
from queryprof.collect.reader import opened_trace, read_profile, read_windows
from queryprof.core import _core
from queryprof.fleet.flat import host_windows
from queryprof.fleet.location import Directory
from queryprof.fleet.names import identifier
from queryprof.fleet.schema import FLEET_TABLE, FLEET_TABLES, HISTOGRAM, SCHEMA
from queryprof.model import Profile
from queryprof.trace.declaration import KEY, LEAST, MOST, SUM
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

pytestmark = pytest.mark.once
pq = pytest.importorskip("pyarrow.parquet")
parquet_files = pytest.importorskip("queryprof.fleet.parquet_files")

FOLDS = {SUM: sum, MOST: max, LEAST: min}
STRANGE = ("a\0b", "\u202ertl", "\N{GRINNING FACE}", "x" * 1_000_000, "tab\tnew\nline", "\udc80")


def write(directory: Path, profile: Profile, is_anonymous: bool = False) -> list[str]:
    return [
        path
        for window in host_windows(profile, is_anonymous)
        for path in parquet_files.write(Directory(str(directory)), window)
    ]


def rows_of(directory: Path, table: str) -> list[dict[str, Any]]:
    files = sorted((directory / table).rglob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def folded(rows: list[dict[str, Any]], by: str, columns: dict[str, int]) -> dict[Any, Any]:
    """Combine known values of columns by their roles, by key."""
    found: dict[Any, dict[str, list[Any]]] = {}
    for row in rows:
        of_key = found.setdefault(row[by], {name: [] for name in columns})
        for name in columns:
            if row[name] is not None:
                of_key[name].append(row[name])
    return {
        key: {name: FOLDS[columns[name]](values) for name, values in lists.items() if values}
        for key, lists in found.items()
    }


def of_trace(path: str, table: str, by: str, prefix: str = "") -> list[dict[str, Any]]:
    """Return the rows of a trace's table, with the texts of references."""
    names = list(roles(table))
    with opened_trace(path) as trace:
        texts = dict(trace.rows(by, ("id", "text" if by == "statement" else "name")))
        found = [
            {
                by: texts[row[0]],
                **dict(zip([f"{prefix}{one}" for one in names], row[1:], strict=True)),
            }
            for row in trace.rows(table, (f"{by}_id", *names))
        ]
        if table == "aggregate":  # without an execution, the longest is unknown
            began = {row[0] for row in trace.rows("histogram", ("aggregate_id",))}
            for row, (number,) in zip(found, trace.rows(table, ("id",)), strict=True):
                row["execution_max_ns"] = row["execution_max_ns"] if number in began else None
    return found


def roles(table: str, prefix: str = "") -> dict[str, int]:
    return {f"{prefix}{one.name}": one.role for one in TABLE[table].columns if one.role != KEY}


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_fold_over_the_files_is_the_fold_over_the_trace(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """This test covers new columns of the tables without changes."""
    folder = tmp_path_factory.mktemp("fold")
    path = str(folder / "x.qprof")
    write_random(path, seed)
    write(folder / "out", read_profile(path))
    flat = rows_of(folder / "out", "aggregate")
    for table, prefix in (("aggregate", ""), ("file_work", "file_")):
        expected = folded(
            of_trace(path, table, "statement", prefix), "statement", roles(table, prefix)
        )
        found = folded(flat, "statement", roles(table, prefix))
        assert {key: found[key] for key in expected} == expected
        assert set(found) >= set(expected)
    spans = rows_of(folder / "out", "span")
    expected = folded(of_trace(path, "span_total", "span"), "span", roles("span_total"))
    assert folded(spans, "span", roles("span_total")) == expected
    profile = read_profile(path)
    assert histogram(flat, "executions") == sum(
        (Counter(dict(one.histogram)) for one in profile.aggregates), Counter()
    )
    assert histogram(spans, "spans") == sum(
        (Counter(dict(one.durations.histogram)) for one in profile.spans), Counter()
    )
    plans = {(row["statement"], row["tree"]) for row in rows_of(folder / "out", "plan")}
    assert plans == {(one.statement, one.tree) for one in profile.plans}
    for row in flat:
        assert row["statement_id"] == identifier(row["statement"])
        assert row["window_start"] <= row["window_end"]


def histogram(rows: list[dict[str, Any]], counts: str) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in rows:
        assert row["buckets"] == sorted(set(row["buckets"]))
        found.update(dict(zip(row["buckets"], row[counts], strict=True)))
    return found


def test_every_column_of_the_trace_is_there() -> None:
    named = set(FLEET_TABLE["aggregate"].names)
    assert named > set(roles("aggregate")) | set(roles("file_work", "file_"))
    assert set(FLEET_TABLE["span"].names) > set(roles("span_total"))
    kept = {KEY, SUM, MOST, LEAST, HISTOGRAM}
    for table in FLEET_TABLES:
        assert {one.role for one in table.columns if one.kind != "text"} <= kept
        assert len(set(table.names)) == len(table.names)


def record(path: str = "x.qprof", work: int = 3) -> None:
    connection = sqlite3.connect("app.db")
    package.install(path)
    connection.execute("CREATE TABLE IF NOT EXISTS t (a, b)")
    with package.span("GET /t"):
        for number in range(work):
            connection.execute("SELECT b FROM t WHERE a = ?", (f"secret {number}",)).fetchall()
    connection.commit()
    package.uninstall()
    connection.close()


def test_what_is_unknown_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERYPROF_VERSION", "2.1")
    record()
    write(Path("out"), read_profile("x.qprof"))
    rows = {(row["statement"], row["operation"]): row for row in rows_of(Path("out"), "aggregate")}
    began = rows["SELECT b FROM t WHERE a = ?", "execute"]
    served = rows["SELECT b FROM t WHERE a = ?", "fetchall"]
    assert (began["count"], began["counted"], sum(began["executions"])) == (3, 3, 3)
    assert began["vm_steps"] > 0
    assert (served["vm_steps"], served["execution_max_ns"]) == (None, None)  # of the execution
    assert served["buckets"] == served["executions"] == []
    assert rows["(connect)", "connect"]["system"] is None if ("(connect)", "connect") in rows else 1
    assert (began["version"], began["environment"], began["system"]) == ("2.1", None, "sqlite")
    (commit,) = [row for key, row in rows.items() if key[1] == "commit"]
    assert (commit["file_syncs"], commit["system"]) == (None, None)  # it had nothing to write
    (span,) = rows_of(Path("out"), "span")
    assert (span["span"], span["count"], span["queries"], span["queries_max"]) == (
        "GET /t",
        1,
        3,
        3,
    )


@pytest.mark.strange_traces
def test_texts_come_back() -> None:
    store = TraceStore("x.qprof")
    columns = TABLE["aggregate"].columns
    with store.transaction():
        process = {
            one.name: 0 if one.sql_type != "TEXT" else "" for one in TABLE["process"].columns
        }
        process |= {one.name: None for one in TABLE["process"].columns if one.is_optional}
        process |= {"host": "h", "argv": '["python", "app.py"]', "end_unix_ns": 1}
        store.add("process", [list(process.values())])
        span, stack = store.id("span", ""), store.id("stack", "")
        thread = store.id("thread", 1, "main")
        for text in STRANGE:
            statement = store.id("statement", text, None, None)
            values = {one.name: 1 for one in columns}
            values |= {"statement_id": statement, "path_id": stack, "span_id": span}
            values |= {"thread_id": thread, "operation": "execute"}
            store.add("aggregate", [[values[one.name] for one in columns]])
    store.close()
    write(Path("out"), read_profile("x.qprof"))
    found = {row["statement"] for row in rows_of(Path("out"), "aggregate")}
    assert found == {one.statement for one in read_profile("x.qprof").aggregates}
    assert len(found) == len(STRANGE)
    assert found >= set(STRANGE[:-1])


def texts_in(directory: Path) -> set[str]:
    return {
        value
        for table in FLEET_TABLES
        for row in rows_of(directory, table.name)
        for value in row.values()
        if isinstance(value, str)
    }


def test_parameters_never_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    record(work=100)
    profile = read_profile("x.qprof")
    assert any("secret" in (one.parameters or "") for one in profile.exemplars)
    write(Path("out"), profile)
    assert not [text for text in texts_in(Path("out")) if "secret" in text]


def test_anonymous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text of the program is a hash: equal texts have equal hashes in every file."""
    monkeypatch.setenv("QUERYPROF_SERVICE", "shop")
    record(work=100)
    profile = read_profile("x.qprof")
    write(Path("plain"), profile)
    write(Path("out"), profile, is_anonymous=True)
    kept = {
        row[name] for row in rows_of(Path("plain"), "aggregate") for name in ("host", "operation")
    }
    kept |= {"sqlite", "", *(row["category"] for row in rows_of(Path("plain"), "finding"))}
    others = {
        text for text in texts_in(Path("out")) - kept if not re.fullmatch("[0-9a-f]{16}", text)
    }
    assert others <= {"high", "medium", "low"}
    (plain, hashed) = (rows_of(Path(name), "aggregate") for name in ("plain", "out"))
    assert sorted(row["statement_id"] for row in plain) == sorted(
        row["statement_id"] for row in hashed
    )
    assert {identifier(row["path"]) for row in plain} == {row["path"] for row in hashed}
    assert len(rows_of(Path("out"), "finding")) == len(rows_of(Path("plain"), "finding")) > 0


def test_a_trace_twice_is_the_same_files() -> None:
    record()
    first = {path: Path(path).read_bytes() for path in write(Path("out"), read_profile("x.qprof"))}
    again = {path: Path(path).read_bytes() for path in write(Path("out"), read_profile("x.qprof"))}
    assert first == again
    assert len(list(Path("out").rglob("*.parquet"))) == len(first) >= 2
    for path in first:
        facts = pq.read_schema(path).metadata
        assert facts[b"queryprof.schema"] == str(SCHEMA).encode()
        assert str(os.getpid()).encode() in facts[b"queryprof.processes"]


@pytest.mark.parametrize(
    "name", ["../../up", "a/b", "..", ".", "x" * 300, "ü" * 200, "'; DROP", "service=\n\0", "~"]
)
@pytest.mark.repeats
def test_a_service_is_one_folder(name: str) -> None:
    record()
    (window,) = host_windows(read_profile("x.qprof"))
    window = replace(window, service=name)
    path = Path("out", parquet_files.name_of("aggregate", window))
    assert path.parts[:2] == ("out", "aggregate")
    assert len(path.parts) == 5
    assert path.parts[2].startswith("service=")
    assert all(len(part) <= 255 for part in path.parts)
    parquet_files.write(Directory("out"), window)
    assert path.exists()


@pytest.mark.slow
def test_windows_are_files_of_their_own(queryprof: Run) -> None:
    connection = sqlite3.connect(":memory:")
    now = time.time_ns()
    package.install("x.qprof", window="1h")
    for number in range(1, 4):
        for _ in range(number):
            connection.execute("SELECT ?", (number,)).fetchone()
        _core.end_window(now + number * 3600 * 10**9)
    package.uninstall()
    connection.close()
    profiles = list(read_windows("x.qprof", print))
    assert len(profiles) >= 4
    assert queryprof("fleet", "export", "-o", "out", "x.qprof").returncode == 0
    rows = [row for row in rows_of(Path("out"), "aggregate") if row["operation"] == "execute"]
    assert [row["count"] for row in sorted(rows, key=lambda row: row["window_start"])] == [1, 2, 3]
    assert len({row["window_start"] for row in rows}) == 3
