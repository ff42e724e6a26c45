"""Damaged traces: every command that reads one prints one line and exits with status 2.

The traces are good ones with changed or missing bytes, values of other types, and missing tables,
renamed tables or views. A report of the readable rest is allowed (exit status 0).
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from pathlib import Path

import pytest
from collect.conftest import Command
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES
from queryprof.collect.reader import read_profile
from queryprof.errors import TraceError
from queryprof.model import Profile
from queryprof.trace.ranges import MAX_SUM, checks_by_column

pytestmark = [pytest.mark.once, pytest.mark.strange_traces]

MOST = max(5, EXAMPLES // 25)
LONGEST_S = 60.0
COMMANDS = (
    ("report", "x.qprof"),
    ("report", "--by", "statement", "--format", "markdown", "x.qprof"),
    ("report", "--by", "site", "--sort", "p99", "x.qprof"),
    ("report", "--by", "thread", "x.qprof"),
    ("report", "--by", "span", "--format", "markdown", "x.qprof"),
    ("report", "--by", "span", "x.qprof"),
    ("report", "--show", "loops", "x.qprof"),
    ("report", "--show", "slowest-requests", "x.qprof"),
    ("report", "--format", "json", "x.qprof"),
    ("compare", "good.qprof", "x.qprof"),
    ("compare", "x.qprof", "good.qprof", "--format", "json"),
    ("compare", "good.qprof", "x.qprof", "--format", "junit"),
    ("compare", "x.qprof", "x.qprof", "--format", "markdown"),
    ("compare", "x.qprof", "good.qprof", "--format", "github"),
    ("merge", "merged.qprof", "good.qprof", "x.qprof"),
)


TWICE = "counted once per trace"
"""merge's line about repeated processes: the damaged trace has those of the good one."""


def refused(command: Command) -> list[str]:
    """Return the lines with which the commands refuse x.qprof. Each ends soon and prints at most
    one line.
    """
    lines = []
    for arguments in COMMANDS:
        Path("merged.qprof").unlink(missing_ok=True)
        started = time.monotonic()
        code, _, err = command(*arguments)
        assert time.monotonic() - started < LONGEST_S, arguments
        assert code in ((0, 1, 2) if arguments[0] == "compare" else (0, 2)), (arguments, err)
        err = "".join(line for line in err.splitlines(keepends=True) if TWICE not in line)
        assert len(err.splitlines()) == (code == 2), (arguments, err)
        if code == 0 and arguments[0] == "merge":
            read_profile("merged.qprof")
        lines += err.splitlines()
    return lines


COLUMNS = [(table, column) for table, columns in checks_by_column().items() for column in columns]


def changed(good: Path, *sqls: str, values: tuple[object, ...] = ()) -> None:
    """Create x.qprof: the good trace after some SQL, as far as SQLite accepts it."""
    Path("x.qprof").write_bytes(good.read_bytes())
    connection = sqlite3.connect("x.qprof", isolation_level=None)
    for sql in sqls:
        try:
            connection.execute(sql, values if "?" in sql else ())
        except sqlite3.Error:
            pass
    connection.close()


FUZZED = settings(
    max_examples=MOST,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ODD = st.sampled_from(
    [
        "text",
        "",
        "1,2,x",
        "[" * 100_000,
        '["a", 1]',
        "99999999999999999999",
        "\x1b[31m",
        None,
        0,
        -1,
        10**18,
        1 << 62,
        -(1 << 62),
        (1 << 63) - 1,
        1.5,
        1e308,
        float("inf"),
        float("-inf"),
        b"\xff\xfe",
        b"",
    ]
)


@pytest.mark.slow
def test_a_good_trace_is_read_by_all_commands(good: Path, command: Command) -> None:
    """The trace that other tests change is good before, and every table has a row."""
    Path("x.qprof").write_bytes(good.read_bytes())
    assert refused(command) == []
    connection = sqlite3.connect("x.qprof")
    for table in checks_by_column():
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() > (0,), table
    connection.close()


@FUZZED
@given(seed=st.integers(0, 1 << 32), turned=st.sampled_from([1, 5, 50, 500]))
@pytest.mark.slow
def test_bytes_are_turned(good: Path, command: Command, seed: int, turned: int) -> None:
    """A disk or a transfer changes bytes."""
    numbers = random.Random(seed)
    data = bytearray(good.read_bytes())
    for _ in range(turned):
        data[numbers.randrange(numbers.choice([200, len(data)]))] = numbers.randrange(256)
    Path("x.qprof").write_bytes(data)
    refused(command)


@FUZZED
@given(share=st.floats(0, 1))
@pytest.mark.slow
def test_the_end_is_cut_off(good: Path, command: Command, share: float) -> None:
    """A copy was interrupted."""
    data = good.read_bytes()
    Path("x.qprof").write_bytes(data[: int(len(data) * share)])
    refused(command)


@FUZZED
@given(data=st.data(), value=ODD | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats())
@pytest.mark.slow
def test_values_are_of_another_kind(
    good: Path, command: Command, data: st.DataObject, value: object
) -> None:
    """Any column has values of any type, even if the schema declares another one."""
    table, column = data.draw(st.sampled_from(COLUMNS))
    changed(
        good,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = '{table}'",
    )
    changed(Path("x.qprof"), f"UPDATE OR REPLACE {table} SET {column} = ?", values=(value,))
    for line in refused(command):
        assert line.startswith(("queryprof: x.qprof: damaged: ", "queryprof: compare: the traces"))


@FUZZED
@example(table="aggregate", number=3)
@given(
    table=st.sampled_from(["process", "statement", "aggregate", "step"]), number=st.integers(0, 6)
)
@pytest.mark.slow
def test_tables_are_others(good: Path, command: Command, table: str, number: int) -> None:
    """A table is missing, renamed, empty, computed, or an endless view. No command hangs."""
    endless = "WITH RECURSIVE r (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT id FROM r"
    sqls = (
        (f"DROP TABLE {table}",),
        (f"ALTER TABLE {table} RENAME TO other",),
        (f"DELETE FROM {table}",),
        (f"DROP TABLE {table}", f"CREATE VIEW {table} AS {endless}"),
        (f"CREATE TRIGGER odd AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",),
        (
            f"ALTER TABLE {table} RENAME COLUMN id TO number",
            f"ALTER TABLE {table} ADD COLUMN id GENERATED ALWAYS AS (hex(zeroblob(1000000)))",
        ),
        (f"DROP TABLE {table}", f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)"),
    )[number]
    changed(good, "PRAGMA legacy_alter_table = ON", *sqls)
    lines = refused(command)
    assert lines or number == 2


DAMAGE = {
    "UPDATE aggregate SET count = -1": "aggregate.count",
    "UPDATE aggregate SET count = 'many'": "aggregate.count",
    "UPDATE aggregate SET total_ns = 1 << 62": "aggregate.total_ns",
    "UPDATE aggregate SET total_ns = 1.5": "aggregate.total_ns",
    "UPDATE aggregate SET execution_sum_sq_ns2 = 9e999": "aggregate.execution_sum_sq_ns2",
    "UPDATE aggregate SET statement_id = 99": "statement.id has no 99",
    "UPDATE aggregate SET path_id = 99": "stack.id has no 99",
    "UPDATE thread SET process_id = 99": "process.id has no 99",
    "UPDATE histogram SET bucket = bucket + 100000": "histogram.bucket",
    "UPDATE stack SET frames = frames || ',x'": "stack.frames",
    "UPDATE stack SET frames = '77,' || frames": "frame.id has no 77",
    "UPDATE process SET argv = '{}'": "process.argv",
    "UPDATE process SET host = CAST(x'ff' AS TEXT)": "process: Could not decode",
    "UPDATE process SET host = x'ff'": "process.host",
    "UPDATE setting SET value = 0": "setting.value",
    "DELETE FROM setting WHERE name = 'timeline_width_ns'": "setting.name has no timeline_width_ns",
    "DELETE FROM setting WHERE name = 'usage_width_ns'": "setting.name has no usage_width_ns",
    "UPDATE span_repeat SET spans = 0": "span_repeat.spans",
}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE lag_histogram SET count = 1 << 59",
        "UPDATE lag SET count = 1, max_ns = 1 << 59",
        "UPDATE timeline SET self_ns = -(1 << 39)",
        "UPDATE setting SET value = 1",
        "UPDATE process SET start_unix_ns = 0",
    ],
)
@pytest.mark.slow
def test_a_chart_of_odd_figures_ends(good: Path, command: Command, sql: str) -> None:
    """Points far outside of a chart's axes are not drawn."""
    changed(good, sql)
    assert refused(command) == []


@pytest.mark.slow
def test_a_path_of_many_frames(good: Path, command: Command) -> None:
    """The path is deeper than Python's own stack."""
    frames = ",".join(["1", "2"] * 5000)
    changed(good, f"UPDATE stack SET frames = '{frames}'")
    assert refused(command) == []


@pytest.mark.parametrize("sql", DAMAGE)
def test_the_line_names_table_and_column(good: Path, sql: str) -> None:
    changed(good, sql)
    with pytest.raises(TraceError, match=r"^x\.qprof: damaged: ") as caught:
        read_profile("x.qprof")
    assert DAMAGE[sql] in str(caught.value)


def test_sums_that_are_too_large_for_the_file_are_not_merged(good: Path, command: Command) -> None:
    """SQLite would turn them into floating-point numbers."""
    changed(good, f"UPDATE aggregate SET vm_steps = {MAX_SUM // 12}")
    assert command("merge", "merged.qprof", *["x.qprof"] * 3)[:2] == (0, "")
    read_profile("merged.qprof")
    code, _, err = command("merge", "merged.qprof", *["x.qprof"] * 20)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "too large to be added" in err


@pytest.mark.slow
def test_what_is_no_file_is_refused(good: Path, command: Command, tmp_path: Path) -> None:
    """A pipe is never waited for, and strange names stay on one line."""
    os.mkfifo("x.qprof")
    assert all("is not a regular file" in line for line in refused(command))
    os.unlink("x.qprof")
    Path("x.qprof").mkdir()
    assert all("directory" in line for line in refused(command))
    odd = os.fsdecode(b"\xff\x1b[2J\n.qprof")
    code, _, err = command("report", odd)
    assert (code, err) == (
        2,
        "queryprof: \\udcff\\x1b[2J\\n.qprof: no trace matches this pattern\n",
    )
    (tmp_path / odd).write_bytes(good.read_bytes())
    assert command("report", odd)[0] == 0
    assert command("report", f"/{tmp_path / 'good.qprof'}")[0] == 0


def sums(profile: Profile) -> list[tuple[str, int]]:
    return [(aggregate.statement, aggregate.total_ns) for aggregate in profile.aggregates]
