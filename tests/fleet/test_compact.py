"""`queryprof fleet compact`: a day's file has the sums of its sources, even after kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from fleet.fleets import DAY_NS, FIRST_DAY_NS, READ, SLOW, Work, add_host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, Run
from queryprof.cli.main import cli

pytestmark = pytest.mark.once
pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from queryprof.fleet import compaction  # noqa: E402
from queryprof.fleet.compaction import KEEP_SOURCES_NS, Compaction, merged_rows  # noqa: E402
from queryprof.fleet.days import day_of  # noqa: E402
from queryprof.fleet.location import Directory  # noqa: E402
from queryprof.fleet.schema import FLEET_TABLE, FLEET_TABLES, HISTOGRAM  # noqa: E402
from queryprof.fleet.store import directory_place, read_store  # noqa: E402
from queryprof.trace.declaration import FIRST, KEY, LEAST, MOST, SUM  # noqa: E402

FAULTS = str(Path(__file__).parent / "compact_faults.py")
QUESTIONS = ("report", "report --by host", "plans", "findings", "trend", "outliers")


def fleet(days: int = 2, hosts: int = 3, directory: str = "store") -> None:
    for day in range(days):
        for host in range(hosts):
            slow = Work(3, 5000, 7 + host, span="GET /")
            work = {READ: Work(10 + host, 100 * (day + 1)), SLOW: slow}
            add_host(Path(directory), f"h{host}", work, day=day, spans={"GET /": 5 + host})


def compact(directory: str = "store") -> tuple[int, int, int]:
    notes: list[str] = []
    done = Compaction(Directory(directory), None, notes.append).run()
    assert notes == []
    return done


def rows(directory: str, table: str) -> list[dict[str, Any]]:
    """Return a table's rows from the files in use (merged files replace their sources)."""
    store = read_store([directory_place(directory)])
    return [
        row
        for paths in store.files[table].values()
        for path in paths
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


def sums(directory: str = "store") -> dict[str, Any]:
    """Return the sums of all rows of each table, by the roles of the columns."""
    return {table.name: sums_of(table.name, rows(directory, table.name)) for table in FLEET_TABLES}


def sums_of(table: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    folds = {SUM: sum, MOST: max, LEAST: min, FIRST: set, KEY: set}
    totals: dict[str, Any] = {}
    for column in FLEET_TABLE[table].columns:
        values = [row[column.name] for row in found if row[column.name] is not None]
        if column.role != HISTOGRAM and values:
            totals[column.name] = folds[column.role](values)  # type: ignore[operator]
    counts: Counter[int] = Counter()
    lists = [one.name for one in FLEET_TABLE[table].columns if one.role == HISTOGRAM]
    for row in found if lists else []:
        counts.update(dict(zip(row[lists[0]], row[lists[1]], strict=True)))
    return {**totals, "histogram": counts}


def files(directory: str = "store") -> list[str]:
    return sorted(str(path) for path in Path(directory).rglob("*") if path.is_file())


def age(directory: str = "store") -> None:
    """Make all files older than the time that merged ones are kept."""
    then = time.time_ns() - KEEP_SOURCES_NS - 1
    for path in files(directory):
        os.utime(path, ns=(then, then))


@pytest.mark.slow
def test_a_day_is_one_file_and_its_sources_go_a_day_later() -> None:
    fleet()
    before = sums()
    sources = files()
    assert compact() == (8, 24, 0)  # of four tables: two days each
    assert sums() == before
    assert set(sources) < set(files())
    assert compact() == (0, 0, 0)
    age()
    assert compact() == (0, 0, 24)
    assert sums() == before
    assert len(files()) == 8
    assert all(Path(path).name.startswith("day-") for path in files())
    assert compact() == (0, 0, 0)


def test_the_sums_are_those_of_a_host_and_version() -> None:
    for hour in range(3):
        add_host(Path("store"), "h", {READ: Work(10, 100 + hour)}, start_ns=hour * DAY_NS // 24)
    add_host(Path("store"), "h", {READ: Work(1, 10**6)}, version="2")
    before = sums()
    compact()
    found = rows("store", "aggregate")
    assert [(row["version"], row["count"], row["max_ns"]) for row in found] == [
        ("1", 30, 102),
        ("2", 1, 10**6),
    ]
    assert sums() == before


@pytest.mark.slow
def test_late_files_are_folded_in() -> None:
    fleet(days=1)
    compact()
    add_host(Path("store"), "late", {READ: Work(1000, 10)})
    before = sums()
    assert before["aggregate"]["count"] > 1000
    days, sources, _ = compact()
    assert (days, sources) == (2, 4)  # no late spans, no late findings
    assert sums() == before
    age()
    compact()
    assert sums() == before
    assert len(files()) == 4


@pytest.mark.slow
def test_what_was_compacted_and_comes_again_does_not_count_again() -> None:
    """A shipper that was killed before it noted a sent batch sends it again."""
    fleet(days=1)
    before = sums()
    kept = {path: Path(path).read_bytes() for path in files()}
    compact()
    age()
    compact()
    for path, content in kept.items():
        Path(path).write_bytes(content)
    assert sums() == before
    assert compact()[0] == 0
    assert sums() == before
    assert len(files()) == 4


@pytest.mark.slow
def test_two_at_once() -> None:
    """One of them has seen a file that the other has not."""
    fleet(days=1, hosts=2)
    first = Path("first")
    subprocess.run(["cp", "-r", "store", "first"], check=True)
    add_host(Path("store"), "h9", {READ: Work(77, 10)})
    before = sums()
    compact("first")
    compact()
    for path in first.rglob("day-*"):
        (Path("store") / path.relative_to(first)).write_bytes(path.read_bytes())
    assert sums() == before
    age()
    compact()
    assert sums() == before
    age()
    compact()
    assert sums() == before
    assert len(files()) == 4


names = st.sampled_from([f"f{number}" for number in range(6)])


@given(st.data())
@pytest.mark.slow
def test_any_days_files_have_each_file_once(data: st.DataObject) -> None:
    """Several runs happen at once. Each sees some of the files, and files are deleted meanwhile."""
    everything = {f"f{number}": {f"f{number}"} for number in range(6)}  # name: its sources
    sources: dict[str, frozenset[str] | None] = dict.fromkeys(everything)
    for number in range(data.draw(st.integers(1, 5))):
        listed = data.draw(st.sets(st.sampled_from(sorted(sources)), min_size=1))
        counted = day_of({name: sources[name] for name in listed}).counted
        name = f"day-{number}"
        everything[name] = set().union(*(everything[one] for one in counted))
        sources[name] = frozenset(counted).union(*(sources[one] or () for one in counted))
        day = day_of(sources)
        leaves = [leaf for one in day.counted for leaf in sorted(everything[one])]
        assert sorted(leaves) == [f"f{number}" for number in range(6)]
        for gone in [*day.folded, *day.superfluous] if data.draw(st.booleans()) else []:
            del sources[gone]
            leaves = [leaf for one in day_of(sources).counted for leaf in everything[one]]
            assert sorted(leaves) == [f"f{number}" for number in range(6)]


@settings(
    max_examples=EXAMPLES // 10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6))
def test_the_fold_is_that_of_the_roles(
    tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """This test covers new columns of any table without changes."""
    from fleet.random_tables import write_random_tables

    folder = str(tmp_path_factory.mktemp("random"))
    at_once = Random(seed)
    monkeypatch.setattr(compaction, "FILES_AT_ONCE", at_once.choice([2, 500]))
    monkeypatch.setattr(compaction, "ROWS_AT_ONCE", at_once.choice([4, 10**5]))
    written = write_random_tables(folder, seed)
    for name, paths in written.items():
        table = FLEET_TABLE[name]
        before = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
        after = [row for some in merged_rows(table, paths) for row in some.to_pylist()]
        keyed = itemgetter(*table.key)
        keys = {keyed(row) for row in before}
        assert len(after) == len(keys)
        for key in keys:
            sides = [[row for row in some if keyed(row) == key] for some in (before, after)]
            expected, found = (sums_of(name, some) for some in sides)
            for column in table.columns:
                if column.role == FIRST:
                    values = expected.pop(column.name, set())
                    assert found.pop(column.name, set()) == ({min(values)} if values else set())
            assert found == expected


@pytest.mark.slow
def test_every_question_has_the_same_answer(queryprof: Run) -> None:
    fleet(days=9, hosts=4)
    add_host(Path("store"), "h0", {READ: Work(10, 10**5, 10, "SCAN t")}, version="2", day=8)

    def answers() -> Iterator[Any]:
        for question in QUESTIONS:
            result = CliRunner().invoke(cli, f"fleet {question} store --format json")
            assert result.exit_code == 0
            yield json.loads(result.stdout)

    before = list(answers())
    result = queryprof("fleet", "compact", "store")
    assert result.returncode == 0
    assert " files into 36; deleted 0" in result.stderr
    assert list(answers()) == before


def test_old_dates_are_deleted(queryprof: Run) -> None:
    fleet(days=1)
    assert queryprof("fleet", "compact", "store", "--keep", "36500d").returncode == 0
    assert files()
    result = queryprof("fleet", "compact", "store", "--keep", "2h")
    assert result.returncode == 0
    assert files() == []


def test_a_date_is_compacted_two_days_after_its_end() -> None:
    fleet(days=1)
    one = Compaction(Directory("store"), None, pytest.fail)
    one._now_ns = FIRST_DAY_NS + 3 * DAY_NS - 1_000_000
    assert one.run() == (0, 0, 0)
    one._now_ns += 1_000_000
    assert one.run() == (4, 12, 0)


def test_a_damaged_file_is_reported_and_stays(queryprof: Run) -> None:
    fleet(days=1)
    damaged = next(Path("store/aggregate").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    result = queryprof("fleet", "compact", "store")
    assert result.returncode == 1
    assert f"skipped: {damaged}: is damaged: " in result.stderr
    assert damaged.exists()


def test_damaged_pages_are_not_made_a_day(queryprof: Run) -> None:
    """DuckDB does not check the checksums of pages."""
    fleet(days=1)
    damaged = next(Path("store/aggregate").rglob("*.parquet"))
    content = bytearray(damaged.read_bytes())
    chunk = pq.read_metadata(damaged).row_group(0).column(0)
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    content[first + chunk.total_compressed_size - 1] ^= 1  # in a page, not in its header
    damaged.write_bytes(content)
    result = queryprof("fleet", "compact", "store")
    assert result.returncode == 1
    assert f"skipped: {damaged}: is damaged" in result.stderr
    age()
    assert queryprof("fleet", "compact", "store").returncode == 1
    assert damaged.exists()


@pytest.mark.slow
def test_columns_of_a_newer_version_are_not_lost(queryprof: Run) -> None:
    fleet(days=1)
    newer = next(Path("store/aggregate").rglob("*.parquet"))
    found = pq.ParquetFile(newer).read()
    pq.write_table(found.append_column("new_figure", [[1] * found.num_rows]), newer)
    before = sums()
    result = queryprof("fleet", "compact", "store")
    assert result.returncode == 1
    assert f"{newer}: has the column 'new_figure' of a newer queryprof" in result.stderr
    assert sums() == before
    age()
    queryprof("fleet", "compact", "store")
    assert newer.exists()


@pytest.mark.parametrize("value", [None, "~", "é"])
@pytest.mark.repeats
def test_rows_of_any_statement_are_kept(value: str | None) -> None:
    fleet(days=1)
    path = next(Path("store/aggregate").rglob("*.parquet"))
    found = pq.ParquetFile(path).read()
    at = found.schema.get_field_index("statement_id")
    named = pa.array([value] * found.num_rows, pa.string())
    pq.write_table(found.set_column(at, found.schema.field("statement_id"), named), path)
    count = sum(row["count"] for row in rows("store", "aggregate"))
    compact()
    assert sum(row["count"] for row in rows("store", "aggregate")) == count


def test_sums_too_large_to_be_one_stay_as_they_are(queryprof: Run) -> None:
    for hour in range(9):
        add_host(Path("store"), "h", {READ: Work(1, 2**60)}, start_ns=hour * DAY_NS // 24)
    before = files()
    result = queryprof("fleet", "compact", "store")
    assert result.returncode == 1
    assert "not merged: aggregate/service=shop/date=2026-11-01: " in result.stderr
    assert set(before) <= set(files())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothere"], "nothere: no such directory"),
        ([".", "--keep", "2"], "'2' is not a duration"),
        ([], "Missing argument"),
    ],
)
def test_wrong_arguments(queryprof: Run, arguments: list[str], message: str) -> None:
    result = queryprof("fleet", "compact", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_it_dies_at_each_of_its_file_operations() -> None:
    fleet(days=1, hosts=2)
    before = sums()
    subprocess.run(["cp", "-r", "store", "kept"], check=True)
    number = 0
    while True:
        number += 1
        subprocess.run(["rm", "-rf", "store"], check=True)
        subprocess.run(["cp", "-r", "kept", "store"], check=True)
        first = died(number)
        assert sums() == before
        age()
        died(1 + number // 2)
        assert sums() == before
        for _ in range(2):
            age()
            compact()
            assert sums() == before
        assert len(files()) == 4
        if not first:
            break
    assert number > 8


def died(number: int) -> int:
    """Return the exit status of a run that dies at a file operation."""
    return subprocess.run([sys.executable, FAULTS, "store", str(number)], check=False).returncode


@pytest.mark.parametrize("rows", [2**62, 2**36, -1])
def test_a_files_row_count_does_not_decide_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"x" * 50_000)
    monkeypatch.setattr(compaction.pq, "read_metadata", lambda _: SimpleNamespace(num_rows=rows))
    assert 0 <= compaction._most_rows(str(path)) <= 50_000
