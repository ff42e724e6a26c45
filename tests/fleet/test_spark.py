"""Apache Spark, run for real, gives the same answers."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from fleet.fleets import READ, SLOW, Work, add_host

pytestmark = [pytest.mark.once, pytest.mark.slow]
pytest.importorskip("duckdb")
pyspark = pytest.importorskip("pyspark.sql")
if not shutil.which("java"):
    pytest.skip("no Java here for Spark", allow_module_level=True)

from queryprof.errors import TraceError  # noqa: E402
from queryprof.fleet import spark as fleet_in_spark  # noqa: E402
from queryprof.fleet.compaction import Compaction  # noqa: E402
from queryprof.fleet.duck import Engine, Selection  # noqa: E402
from queryprof.fleet.location import Directory  # noqa: E402
from queryprof.fleet.store import directory_place, read_store  # noqa: E402

SIDES = {"before": "1", "after": "2"}
QUESTIONS = (
    ("ranking", {"by": "few"}),
    ("ranking", {"by": "statement"}),
    ("ranking", {"by": "site"}),
    ("ranking", {"by": "host"}),
    ("compare", SIDES),
    ("requests", SIDES),
    ("new_plans", SIDES),
    ("new_findings", SIDES),
    ("new_statements", SIDES),
    ("outliers", {}),
    ("trend", {}),
    ("plans", {}),
    ("findings", {}),
    ("names", {}),
    ("tables", {}),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    builder = pyspark.SparkSession.builder.master("local[2]")
    for name, value in (
        ("spark.ui.enabled", "false"),
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.sql.warehouse.dir", str(folder)),
    ):
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a store of 100 hosts and 3 days, with ten earlier days of a few hosts. One of two
    versions is slower.
    """
    folder = tmp_path_factory.mktemp("fleet") / "store"
    chance = random.Random(1)
    for day in range(10, 13):
        for host in range(100):
            is_new = day == 12 and host < 40
            steps = chance.randrange(900, 1100) * (3 if is_new else 1)
            work = {
                READ: Work(chance.randrange(50, 90), chance.randrange(900, 1100), 10, span="GET /"),
                SLOW: Work(
                    chance.randrange(50, 90),
                    chance.randrange(90_000, 110_000) * (4 if host == 99 else 2 if is_new else 1),
                    steps,
                    "SCAN t" if is_new else "SCAN u" if host == 7 else "SEARCH t USING INDEX i",
                    "GET /",
                ),
            }
            if is_new:
                work["SELECT new FROM t"] = Work(400, 500, 5, span="GET /")
            version = "2" if is_new else None if host == 50 else "1"
            add_host(folder, f"h{host}", work, version, day, spans={"GET /": 30})
    for day in range(3, 10):
        for host in range(3):
            add_host(folder, f"h{host}", {SLOW: Work(100, 50_000)}, "1", day, spans={"GET /": 25})
    return folder


def close(one: Any, other: Any) -> bool:
    if isinstance(one, datetime) and isinstance(other, datetime):
        return one.replace(tzinfo=UTC) == other.replace(tzinfo=UTC)
    if isinstance(one, date) or isinstance(one, str) or one is None or other is None:
        return bool(one == other)
    return abs(float(one) - float(other)) <= 1e-9 * max(abs(float(one)), abs(float(other)), 1e-9)


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's rows have the times of this process's zone."""
    monkeypatch.setenv("TZ", "UTC")
    import time

    time.tzset()


@pytest.mark.parametrize(
    ("name", "values"), QUESTIONS, ids=[f"{n}-{v.get('by', '')}" for n, v in QUESTIONS]
)
def test_every_answer_is_that_of_duckdb(
    session: Any, store: Path, name: str, values: dict[str, Any]
) -> None:
    engine = Engine(read_store([directory_place(str(store))]))
    expected = engine.answer(name, Selection(), **values)
    engine.close()
    fleet_in_spark.tables(session, str(store))
    found = fleet_in_spark.ask(session, name, **values)
    assert tuple(found.columns) == expected.columns
    rows = rows_of(found)
    assert len(rows) == len(expected.rows) > 0
    for row, other in zip(rows, expected.rows, strict=True):
        assert all(close(one, two) for one, two in zip(row, other, strict=True)), (row, other)


def test_a_selection(session: Any, store: Path) -> None:
    fleet_in_spark.tables(
        session, str(store), service="shop", host="h1", since=datetime(2026, 11, 13, tzinfo=UTC)
    )
    (row,) = rows_of(
        session.sql("SELECT count(DISTINCT host), count(DISTINCT date) FROM aggregate")
    )
    assert row == (1, 1)


def test_days_files_count_once(session: Any, store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")

    def calls() -> Any:
        fleet_in_spark.tables(session, str(tmp_path / "store"))
        return rows_of(session.sql("SELECT sum(count), count(DISTINCT host) FROM aggregate"))

    before = calls()
    Compaction(Directory(str(tmp_path / "store")), None, print).run()
    assert any(path.name.startswith("day-") for path in (tmp_path / "store").rglob("*"))
    assert calls() == before


def test_errors_are_reported(session: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no fleet data"):
        fleet_in_spark.tables(session, str(tmp_path))
    folder = tmp_path / "aggregate" / "service=a" / "date=2026-11-01"
    folder.mkdir(parents=True)
    (folder / "x.parquet").write_bytes(b"nothing")
    with pytest.raises(TraceError, match="not a complete Parquet file"):
        fleet_in_spark.tables(session, str(tmp_path))
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(TraceError, match="time zone is Europe/Berlin"):
            fleet_in_spark.tables(session, str(tmp_path))
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")
    assert os.path.isdir(tmp_path)
