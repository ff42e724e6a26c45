"""Other people's programs: the standard library's own tests, sqlite-utils, datasette."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import airportsdata
import pytest

from conftest import QUERYPROF, Run, by_operation
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile

SITE_PACKAGES = Path(airportsdata.__file__).parent.parent


VERDICT = re.compile(
    r"^(.* \.\.\. )(?:(?!.* \.\.\. ).*\n)*?.*?(ok|FAIL|ERROR|skipped .*|(?:un)?expected \w+)$",
    re.MULTILINE,
)
"""A test's line and its verdict, with any log output of the test in between."""


def outcome(output: str) -> list[str]:
    """Return unittest's result of each test, and its last lines, without times, seeds, addresses
    and logs.
    """
    found = [re.sub(r"0x[0-9a-f]+", "0x", "".join(one)) for one in VERDICT.findall(output)]
    return sorted(found) + re.findall(r"^(?:Ran \d+ tests|OK.*|FAILED.*)", output, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["test_sqlite3", pytest.param("test_asyncio", marks=pytest.mark.compat)]
)
@pytest.mark.slow
def test_the_standard_librarys_own_tests(queryprof: Run, name: str) -> None:
    """CPython's suites give the same results with and without `queryprof run`."""
    module = ("-m", "unittest", "-v", f"test.{name}")
    bare = subprocess.run(
        [sys.executable, *module], capture_output=True, text=True, check=False, timeout=600
    )
    recorded = queryprof("run", "--no-report", "-o", "x.qprof", *module, timeout=600)
    assert bare.returncode == recorded.returncode == 0, recorded.stderr[-2000:]
    assert len(outcome(bare.stderr)) > 300
    assert outcome(bare.stderr) == outcome(recorded.stderr)
    profile = read_profile("x.qprof")
    if name == "test_sqlite3":
        assert sum(by_operation(profile).values()) > 2000
    else:
        assert sum(loop.steps for loop in profile.loops) > 20_000


@pytest.mark.compat
@pytest.mark.parametrize(
    ("library", "module", "tests", "calls"),
    [
        ("aiosqlite", ("-m", "unittest", "-v", "aiosqlite.tests.smoke"), 25, 100),
        ("apsw", ("-m", "apsw.tests", "-v"), 200, 10_000),
    ],
)
def test_the_drivers_own_tests(
    queryprof: Run, library: str, module: tuple[str, ...], tests: int, calls: int
) -> None:
    """The suites of APSW and aiosqlite have the same failures, if any, as without recording."""
    pytest.importorskip(library)
    bare = subprocess.run(
        [sys.executable, *module],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},  # as the recorded one has
    )
    recorded = queryprof("run", "--no-report", "-o", "x.qprof", *module, timeout=900)
    assert bare.returncode == recorded.returncode, recorded.stderr[-2000:]
    assert verdicts(bare.stderr) == verdicts(recorded.stderr)
    assert len(verdicts(bare.stderr)) > tests
    assert sum(by_operation(read_profile("x.qprof")).values()) > calls


def verdicts(output: str) -> list[str]:
    """Return the verdicts by test name. Threads may print in between."""
    lines = re.findall(r"^(\w+) \(([\w.]+)\)", output, re.MULTILINE)
    failed = re.findall(r"^(?:FAIL|ERROR): .*", output, re.MULTILINE)
    ended = re.findall(r"^(?:Ran \d+ tests|OK.*|FAILED.*)", output, re.MULTILINE)
    return sorted(".".join(line) for line in lines) + sorted(failed) + ended


@pytest.fixture
def airports(tmp_path: Path) -> Path:
    rows = list(airportsdata.load().values())
    with (tmp_path / "airports.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return tmp_path / "airports.csv"


def installed(name: str) -> Path:
    return Path(sys.executable).with_name(name)


@pytest.mark.slow
def test_sqlite_utils_inserts_28_000_rows(queryprof: Run, airports: Path) -> None:
    """The number of rows is exact, and with QUERYPROF_ROOTS the call sites are inside sqlite-utils."""
    root = SITE_PACKAGES / "sqlite_utils"
    result = queryprof(
        "run",
        "-o",
        "x.qprof",
        installed("sqlite-utils"),
        "insert",
        "a.db",
        "airports",
        airports,
        "--csv",
        env={"QUERYPROF_ROOTS": str(root)},
    )
    assert result.returncode == 0, result.stderr
    connection = sqlite3.connect("a.db")
    (rows,) = connection.execute("SELECT count(*) FROM airports").fetchone()
    connection.close()
    profile = read_profile("x.qprof")
    inserted = [
        a
        for a in profile.aggregates
        if a.statement.startswith("INSERT INTO [airports]")
        or a.statement.startswith('INSERT INTO "airports"')
    ]
    assert rows > 28_000
    assert sum(a.rows for a in inserted) == rows
    assert all(a.path[0].file.startswith(str(root)) for a in inserted)
    assert "sqlite_utils/db.py" in result.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_datasette_answers_requests(airports: Path) -> None:
    """A server with threads is stopped by a signal: all its queries are recorded, and its call
    sites are behind its helpers (five nested functions).
    """
    connection = sqlite3.connect("a.db")
    connection.execute("CREATE TABLE airport (icao TEXT PRIMARY KEY, name TEXT)")
    with connection:
        connection.executemany(
            "INSERT INTO airport VALUES (?, ?)",
            [(a["icao"], a["name"]) for a in airportsdata.load().values()],
        )
    connection.close()
    port = free_port()
    server = subprocess.Popen(
        [
            QUERYPROF,
            "run",
            "--no-report",
            "-o",
            "x.qprof",
            installed("datasette"),
            "serve",
            "a.db",
            "--port",
            str(port),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "QUERYPROF_ROOTS": str(SITE_PACKAGES / "datasette")},
    )
    sql = "select+name+from+airport+where+icao+=+:icao"
    address = f"http://127.0.0.1:{port}/a.json?sql={sql}&icao=EGLL&_shape=array"
    for _ in range(200):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            break
        except OSError:
            time.sleep(0.1)
    for _ in range(20):
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert json.load(answer) == [{"name": "London Heathrow Airport"}]
    for page in ("", "a", "a/airport", "a/airport/EGLL", "-/databases.json"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10).close()
    server.send_signal(signal.SIGINT)
    server.send_signal(signal.SIGTERM)
    _, errors = server.communicate(timeout=60)
    profile = read_profile("x.qprof")
    counts = by_operation(profile)
    assert counts["SELECT name FROM airport WHERE icao = :icao", "execute"] == 21, errors
    asked = [a for a in profile.aggregates if a.statement.startswith("SELECT name FROM airport")]
    assert all("datasette" in a.path[0].file for a in asked)
    assert all(a.thread.name != "MainThread" for a in asked)
    ranked = Report(profile, top=20).ranking.bottlenecks
    sites = {(b.site.frame.file, b.site.frame.line) for b in ranked if b.site.frame}
    assert len(sites) >= len(ranked) / 2


@pytest.mark.compat
@pytest.mark.parametrize("times", range(10))
def test_the_standard_librarys_tests_again_and_again(queryprof: Run, times: int) -> None:
    """A failure in one of ten runs would break somebody's build."""
    tests = ("-m", "test", "-q", "test_sqlite3", "test_asyncio")
    result = queryprof("run", "--no-report", *tests, timeout=1800)
    assert result.returncode == 0, result.stdout[-2000:]


@pytest.mark.slow
def test_the_example_shows_its_faults(queryprof: Run, script: Callable[[str], Path]) -> None:
    """`make demo` finds the commit for each insert, the scan and the N+1 query."""
    example = Path(__file__).parents[2] / "examples" / "airports" / "app.py"
    result = queryprof("run", "-o", "x.qprof", example)
    assert result.returncode == 0, result.stderr
    profile = read_profile("x.qprof")
    counts = by_operation(profile)
    assert counts["COMMIT", "commit"] == 301
    assert counts["SELECT name FROM airport WHERE country = ?", "execute"] > 200
    (scan,) = [
        a
        for a in profile.aggregates
        if a.statement.startswith("SELECT name FROM airport WHERE city")
        and a.operation == "execute"
    ]
    assert scan.full_scan_steps > 28_000 * scan.count * 0.9
    assert "The vital few" in result.stderr
    shown = queryprof("report", "x.qprof", "--top", "99").stdout
    for function in ("log_visits() ", "find_city() ", "countries() "):
        assert function in shown
    assert result.stdout.startswith("US: ")
