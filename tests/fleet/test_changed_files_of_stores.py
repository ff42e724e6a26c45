"""A file that only one of a store's readers can read: the rows of all other files are there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fleet.fleets import READ, Work, add_host

from conftest import Run

pytestmark = pytest.mark.once
pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

ROOT_IS_REQUIRED, ROOT_IS_NOTHING = b"5\x00\x18\x06schema", b"5\xff\xff\xff\xff\x0f\x18\x06schema"
"""The first of a footer's columns, and whether it is required, in Thrift's compact protocol."""


def made(*hosts: str) -> list[Path]:
    for host in hosts:
        add_host(Path("out"), host, {READ: Work(10, 10)})
    return sorted(Path("out/aggregate").rglob("*.parquet"))


def calls(queryprof: Run) -> tuple[int, int, str]:
    """Return the status, the number of calls, and the messages."""
    result = queryprof("fleet", "report", "out", "--by", "statement", "--format", "json")
    rows = json.loads(result.stdout or "[]")
    return result.returncode, int(sum(row["calls"] for row in rows)), result.stderr


def make_footer_lie(path: Path) -> None:
    content = path.read_bytes()
    first = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[first:-8].replace(ROOT_IS_REQUIRED, ROOT_IS_NOTHING, 1)
    path.write_bytes(content[:first] + footer + len(footer).to_bytes(4, "little") + content[-4:])
    assert pq.ParquetFile(path).read().num_rows >= 1


def test_a_footer_that_duckdb_alone_refuses(queryprof: Run) -> None:
    path = made("a", "b", "c")[0]
    make_footer_lie(path)
    status, count, message = calls(queryprof)
    assert (status, count) == (1, 20)
    assert f"skipped: {path}: is damaged: " in message


def test_a_day_is_made_of_what_duckdb_can_read(queryprof: Run) -> None:
    path = made("a", "b", "c")[0]
    make_footer_lie(path)
    result = queryprof("fleet", "compact", "out")
    assert result.returncode == 1
    assert f"skipped: {path}: is damaged: " in result.stderr
    assert len([*path.parent.glob("day-*.parquet")]) == 1
    assert path.exists()
    assert calls(queryprof)[:2] == (1, 20)


def test_a_days_file_that_cannot_be_read_keeps_its_sources(queryprof: Run) -> None:
    """They are deleted a day later, once the day's file has their rows."""
    sources = made("a", "b")
    assert queryprof("fleet", "compact", "out").returncode == 0
    (day,) = sources[0].parent.glob("day-*.parquet")
    make_footer_lie(day)
    for path in (day, *sources):
        os.utime(path, (0, 0))
    result = queryprof("fleet", "compact", "out")
    assert f"skipped: {day}: is damaged: " in result.stderr
    assert all(path.exists() for path in sources)


def test_sources_of_a_sound_days_file_are_deleted(queryprof: Run) -> None:
    sources = made("a", "b")
    assert queryprof("fleet", "compact", "out").returncode == 0
    (day,) = sources[0].parent.glob("day-*.parquet")
    for path in (day, *sources):
        os.utime(path, (0, 0))
    assert queryprof("fleet", "compact", "out").returncode == 0
    assert not any(path.exists() for path in sources)
    assert calls(queryprof)[:2] == (0, 20)


def test_a_name_that_is_no_unicode(queryprof: Run) -> None:
    path = made("a", "b")[0]
    os.rename(path, os.fsencode(path.with_name("\udcff.parquet")))
    status, count, message = calls(queryprof)
    assert (status, count) == (1, 10)
    assert "its name is not UTF-8" in message
    result = queryprof("fleet", "compact", "out")
    assert result.returncode == 1
    assert "its name is not UTF-8" in result.stderr


def test_a_column_whose_name_is_no_unicode(queryprof: Run) -> None:
    path = made("a", "b")[0]
    content = path.read_bytes()
    path.write_bytes(content.replace(b"statement_id", b"statement_i\xc3", 1))
    status, count, message = calls(queryprof)
    assert (status, count) == (1, 10)
    assert f"skipped: {path}: " in message
    result = queryprof("fleet", "compact", "out")
    assert result.returncode == 1
    assert f"skipped: {path}: " in result.stderr
    assert path.exists()
