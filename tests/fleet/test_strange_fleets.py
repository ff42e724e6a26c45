"""Unusual recordings and files: which of them count, and what is reported about the others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fleet.fleets import READ, SLOW, Work, add_host

from conftest import QUERYPROF, Run
from queryprof.cli.main import cli
from queryprof.region.region import opened_region

pytestmark = pytest.mark.once
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

HEAVY = Work(1000, 10**6, span="GET /")
RECORDS = """
import sqlite3, sys, time
import queryprof
from queryprof.core import _core

queryprof.install(sys.argv[1], window="1h")
connection = sqlite3.connect(":memory:")
HOUR_NS = 3600 * 10**9
border = time.time_ns() // HOUR_NS * HOUR_NS + HOUR_NS
for step in sys.argv[2].split():
    executions, _, offset_s = step.partition("@")
    for number in range(int(executions)):
        connection.execute("SELECT ?", (number,))
    _core.end_window(border + int(float(offset_s or 0) * 10**9))
"""


def record(path: str, steps: str) -> None:
    subprocess.run([sys.executable, "-c", RECORDS, path, steps], check=True)


def give_head(part: Path, name: str, value: int) -> None:
    """Change a value in the header of a part. If it is a list, change all its elements."""
    with opened_region(str(part)) as region, part.open("r+b") as file:
        column = region._head.columns[name]
        file.seek(column.at)
        file.write(value.to_bytes(8, "little") * (column.bytes // 8))


def executions(result: subprocess.CompletedProcess[str]) -> int:
    """Return the executions of SELECT ?, from the JSON of a ranking by statement."""
    found = [one for one in json.loads(result.stdout) if one["statement"] == "SELECT ?"]
    return sum(int(one["calls"]) for one in found)


def ranking(queryprof: Run, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("--by", "statement", "--format", "json")
    return queryprof("fleet", "report", *arguments, *options)


def export(queryprof: Run, *traces: str) -> subprocess.CompletedProcess[str]:
    return queryprof("fleet", "export", "-o", "out", *traces)


def test_a_window_without_calls_is_no_end(queryprof: Run) -> None:
    record("x.qprof", "0 5 0 7")
    assert export(queryprof, "x.qprof").returncode == 0
    assert executions(ranking(queryprof, "out")) == 12


@pytest.mark.slow
def test_a_clock_that_is_set_back(queryprof: Run) -> None:
    """Windows that begin at the same time are separate files."""
    record("x.qprof", "1@1 1000@3601 3@3599 5@3601 7@1")
    assert export(queryprof, "x.qprof").returncode == 0
    assert executions(ranking(queryprof, "out")) == 1016
    assert executions(ranking(queryprof, "x.qprof")) == 1016


@pytest.mark.parametrize("how", ["cut", "gone", "damaged", "impossible"])
@pytest.mark.repeats
def test_a_missing_window_is_reported(queryprof: Run, how: str) -> None:
    record("x.qprof", "5@0 50@3600 500@7200")
    (part,) = Path().glob("x.qprof.*-2.live")
    if how == "cut":
        os.truncate(part, 1000)
    elif how in ("damaged", "impossible"):
        give_head(part, *(("timeline_first", 2**53) if how == "damaged" else ("own_ns", 2**61)))
    else:
        part.unlink()
    result = export(queryprof, "x.qprof")
    assert result.returncode == 1
    assert "skipped: " in result.stderr
    result = ranking(queryprof, "x.qprof")
    assert (result.returncode, executions(result)) == (1, 505)
    assert "skipped: " in result.stderr
    for command in (
        ["merge", "m.qprof", "x.qprof"],
        ["compare", "x.qprof", "x.qprof"],
        ["export", "--format", "speedscope", "-o", "-", "x.qprof"],
    ):
        assert "skipped: " in queryprof(*command).stderr


@pytest.mark.slow
def test_a_merged_trace_beside_its_windows_is_noted(queryprof: Run) -> None:
    record("x.qprof", "5@0 50@3600 500@7200")
    assert queryprof("merge", "m.qprof", "x.qprof").returncode == 0
    for order in (["x.qprof", "m.qprof"], ["m.qprof", "x.qprof"]):
        result = ranking(queryprof, *order)
        assert executions(result) == 2 * 555
        assert (
            "counted more than once: they are in several files, or a host's clock was set back"
            in result.stderr
        )


@pytest.mark.slow
def test_a_reader_that_ends_early_is_no_regression() -> None:
    for version in ("1", "2"):
        for host in range(8):
            add_host(Path("out"), f"h{host}", {READ: Work(100, 10)}, version=version)
    for form in ("table", "json"):
        with subprocess.Popen(
            [QUERYPROF, "fleet", "compare", "1", "2", "out", "--format", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() == 0


def test_links_are_not_followed(queryprof: Run) -> None:
    """Links to directories may form a circle, or lead to /proc or to other users' files."""
    add_host(Path("elsewhere"), "other", {READ: Work(5, 10)})
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    service = Path("out/aggregate/service=shop")
    (service / "up").symlink_to("..")
    (service / "date=2026-11-02").symlink_to("date=2026-11-01")
    (service / "date=2026-11-03").symlink_to("/proc")
    Path("out/aggregate/service=other").symlink_to("../../elsewhere/aggregate/service=shop")
    (service / "date=2026-11-01" / "none.parquet").symlink_to("nowhere")
    result = ranking(queryprof, "out")
    assert [one["calls"] for one in json.loads(result.stdout)] == [10]
    assert result.returncode == 1
    for name in ("date=2026-11-01/none.parquet", "up", "date=2026-11-02", "date=2026-11-03"):
        assert f"service=shop/{name}: is a link; move" in result.stderr
    assert "service=other: is a link; move" in result.stderr


def test_a_table_that_is_a_link_keeps_its_files(queryprof: Run) -> None:
    """Files outside of a store are neither read nor deleted."""
    add_host(Path("elsewhere"), "h", {READ: Work(10, 10)})
    Path("out").mkdir()
    Path("out/aggregate").symlink_to("../elsewhere/aggregate")
    before = sorted(Path("elsewhere").rglob("*"))
    assert "out/aggregate: is a link; move" in ranking(queryprof, "out").stderr
    assert queryprof("fleet", "compact", "out", "--keep", "10d").returncode == 0
    assert sorted(Path("elsewhere").rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all directories")
def test_an_unreadable_directory_is_reported(queryprof: Run) -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    add_host(Path("out"), "h", {READ: Work(10, 10)}, day=1)
    folder = Path("out/aggregate/service=shop/date=2026-11-02")
    folder.chmod(0)
    result = ranking(queryprof, "out")
    folder.chmod(0o700)
    assert result.returncode == 1
    assert "date=2026-11-02: cannot be read: Permission denied" in result.stderr


@pytest.fixture(scope="module")
def whole_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "out"
    for version in ("1", "2"):
        for host in range(8):
            work = {READ: Work(100, 10**6, plan=f"SCAN t{host % 2}"), SLOW: HEAVY}
            add_host(folder, f"h{host}", work, version=version, spans={"GET /": 30})
    return folder


def changed(column: str, value: Any, table: str = "aggregate") -> None:
    """Change a column of the rows of one file."""
    path = next(Path("out", table).rglob("*.parquet"))
    found = pq.ParquetFile(path).read()
    at = found.schema.get_field_index(column)
    values = pa.array([value] * found.num_rows, found.schema.field(column).type)
    pq.write_table(found.set_column(at, found.schema.field(column), values), path)


STRANGE_VALUES = (
    ("aggregate", "count", None),
    ("aggregate", "rows", None),
    ("aggregate", "window_start", None),
    ("aggregate", "window_end", datetime(9999, 12, 31, tzinfo=UTC)),
    ("aggregate", "window_start", datetime(1, 1, 1, tzinfo=UTC)),
    ("aggregate", "buckets", None),
    ("aggregate", "executions", None),
    ("aggregate", "statement", None),
    ("aggregate", "site", None),
    ("aggregate", "span", None),
    ("plan", "tree", None),
    ("plan", "statement", None),
    ("span", "count", None),
    ("finding", "gain_ns", None),
    ("finding", "category", None),
    ("finding", "fix", None),
)


@pytest.mark.parametrize(
    ("table", "column", "value", "first", "every"),
    [
        *((*value, number % 4, 4) for number, value in enumerate(STRANGE_VALUES)),
        *(pytest.param(*value, 0, 1, marks=pytest.mark.slow) for value in STRANGE_VALUES),
    ],
)
@pytest.mark.repeats
def test_values_that_are_none_of_ours(
    whole_fleet: Path, table: str, column: str, value: Any, first: int, every: int
) -> None:
    """Each value is tested with some questions here, and with all of them at night."""
    shutil.copytree(whole_fleet, "out")
    changed(column, value, table)
    for question in QUESTIONS[first::every]:
        result = CliRunner().invoke(cli, ["fleet", *question, "out"])
        assert result.exception is None or isinstance(result.exception, SystemExit), question
        assert result.exit_code in (0, 1)


QUESTIONS = (
    ["report"],
    ["report", "--by", "site"],
    ["report", "--by", "host"],
    ["plans"],
    ["findings"],
    ["trend"],
    ["outliers"],
    ["compare", "1", "2"],
    ["report", "--during", "2026-01-01"],
)


@pytest.mark.parametrize("names", [("service",), ("HOST",), ("Host", "service")])
@pytest.mark.repeats
def test_columns_that_are_none_of_ours(queryprof: Run, names: tuple[str, ...]) -> None:
    for host in range(3):
        add_host(Path("out"), f"h{host}", {READ: Work(10, 10)})
    path = next(Path("out/aggregate").rglob("*.parquet"))
    found = pq.ParquetFile(path).read()
    for name in names:
        found = found.add_column(0, name, pa.array(["evil"] * found.num_rows))
    pq.write_table(found, path)
    (row,) = json.loads((result := ranking(queryprof, "out", "--where", "service=shop")).stdout)
    is_left_out = names != ("service",)
    assert (row["calls"], row["hosts"]) == ((20, 2) if is_left_out else (30, 3))
    assert result.returncode == is_left_out
    assert ("has two columns with the same name" in result.stderr) == is_left_out


def test_a_file_with_damaged_pages_is_left_out(queryprof: Run) -> None:
    for host in range(3):
        add_host(Path("out"), f"h{host}", {READ: Work(10, 10)})
    path = next(Path("out/aggregate").rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    result = ranking(queryprof, "out")
    assert result.returncode == 1
    assert f"skipped: {path}: is damaged" in result.stderr
    assert [one["calls"] for one in json.loads(result.stdout)] == [20]


def test_a_pipe_in_the_place_of_a_file(queryprof: Run) -> None:
    record("x.qprof", "5")
    folder = Path("out/aggregate/service=a/date=2026-01-01")
    folder.mkdir(parents=True)
    os.mkfifo(folder / "0.parquet")
    assert export(queryprof, "x.qprof").returncode == 0


def test_a_planted_link_is_not_followed(queryprof: Run) -> None:
    from queryprof.fleet.location import Directory

    Path("victim").write_text("whole")
    Path("out").mkdir()
    Path(f"out/.name.{os.getpid()}.new").symlink_to("../victim")
    Directory("out").put("name", b"content")
    assert Path("victim").read_text() == "whole"
    assert not Path("out/name").is_symlink()
    assert Path("out/name").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["x[1].qprof", "a*b.qprof", "l" * 230 + ".qprof"])
@pytest.mark.repeats
def test_any_name_of_a_recording(queryprof: Run, name: str) -> None:
    Path("place").mkdir()
    record(f"place/{name}", "5@0 7@3600")
    assert export(queryprof, f"place/{name}").returncode == 0
    assert executions(ranking(queryprof, "out")) == 12
    assert queryprof("fleet", "export", "-o", "other", "place").returncode == 0
    assert executions(ranking(queryprof, "other")) == 12


@pytest.mark.slow
def test_a_service_that_is_no_text(queryprof: Run) -> None:
    environment = {**os.environb, b"QUERYPROF_SERVICE": b"\xff"}
    subprocess.run([sys.executable, "-c", RECORDS, "x.qprof", "5"], check=True, env=environment)
    assert export(queryprof, "x.qprof").returncode == 0
    assert executions(ranking(queryprof, "out", "--where", "service=" + os.fsdecode(b"\xff"))) == 5


@pytest.mark.slow
def test_ctrl_c_in_a_question() -> None:
    for host in range(3):
        add_host(Path("out"), f"h{host}", {READ: Work(10, 10)})
    code = (
        "import os, signal, threading, duckdb\n"
        "from queryprof.fleet.duck import Engine, Selection\n"
        "from queryprof.fleet.store import directory_place, read_store\n"
        "engine = Engine(read_store([directory_place('out')]))\n"
        "def text(name):\n"
        "    print('begins', flush=True)\n"
        f"    return 'SELECT sum(range) FROM range({10**14})'\n"
        "engine.text = text\n"
        "engine.answer('ranking', Selection())\n"
    )
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.stderr
        assert process.stderr.read().rstrip().endswith(b"KeyboardInterrupt")


def test_a_working_directory_that_was_removed() -> None:
    add_host(Path("out"), "h", {READ: Work(10, 10)})
    place = Path("out").resolve()
    code = "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone');"
    code += f" os.execv({str(QUERYPROF)!r}, ['queryprof', 'fleet', 'report', {str(place)!r}])"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in result.stderr
    assert result.returncode in (0, 2)


@pytest.mark.slow
def test_a_merged_trace_beside_those_of_hosts_makes_no_loop(queryprof: Run) -> None:
    """Its spans are of all versions together, so executions per span are unknown."""
    program = (
        "import sqlite3, queryprof\n"
        "c = sqlite3.connect(':memory:')\n"
        "for _ in range(30):\n"
        "    with queryprof.span('GET /'):\n"
        "        c.execute('SELECT 1')\n"
    )
    Path("program.py").write_text(program)
    for number, version in enumerate(("1", "2", "2", "2", "1")):
        environment = {"QUERYPROF_VERSION": version, "QUERYPROF_SERVICE": "shop"}
        command = ["run", "--no-report", "-o", f"{number}.qprof", "program.py"]
        assert queryprof(*command, env=environment).returncode == 0
    assert queryprof("merge", "all.qprof", "2.qprof", "3.qprof", "4.qprof").returncode == 0
    asked = ("fleet", "compare", "1", "2", "--fail-on", "counts")
    result = queryprof(*asked, "0.qprof", "1.qprof", "all.qprof")
    assert "not checked: counts: some spans combine several versions" in result.stdout
    assert "counts 1" not in result.stdout


def test_a_day_is_what_was_recorded_of_it(queryprof: Run) -> None:
    """There are ten days, with a finding on one of them."""
    for day in range(10):
        heavy = {READ: HEAVY, SLOW: HEAVY._replace(each_ns=10**7)}
        work = heavy if day == 5 else {READ: Work(1, 1)}
        add_host(Path("out"), "h", work, day=day, spans={"GET /": 5})

    def gains(*options: str) -> list[float]:
        result = queryprof("fleet", "findings", "out", "--format", "json", *options)
        return [one["gain_seconds_a_day"] for one in json.loads(result.stdout)]

    found, of_one_day = gains(), gains("--during", "2026-11-06..2026-11-06T12:00")
    assert found
    assert [10 * gain for gain in found] == pytest.approx(of_one_day, rel=1e-3)
