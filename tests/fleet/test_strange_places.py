"""`queryprof fleet ship` if places change, belong to others or are full, and its exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUERYPROF, Run

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from fleet.test_ship import executions, record, ship  # noqa: E402  needs pyarrow

from queryprof.fleet.batches import FOLDER, Batches  # noqa: E402
from queryprof.fleet.location import Directory  # noqa: E402
from queryprof.fleet.shipping import Shipper, Shipping  # noqa: E402

CALLS = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')"


def shipper(*places: str, store: str = "store") -> Shipper:
    return Shipper(places, Directory(store, "ship"), Shipping(10**9), print)


@pytest.mark.parametrize("name", ["lost-1-1", "taken-1", "sent-1"])
def test_no_link_in_its_folder_is_followed(name: str) -> None:
    """The owner of a place may put anything there, while root ships from it."""
    os.mkdir("place")
    Path("victim/below").mkdir(parents=True)
    Path("victim/whole").write_text("whole")
    Path("victim/x.live").write_text("whole")
    Path("victim/below/whole").write_text("whole")
    with shipper("place") as one:
        one.run()
        os.rename(f"place/{FOLDER}", "place/other")
        os.mkdir(f"place/{FOLDER}")
        os.symlink(os.path.abspath("victim"), f"place/{FOLDER}/{name}")
        for _ in range(2):
            try:
                one.run()
            except Exception as error:
                print(error)
    assert sorted(str(path) for path in Path("victim").rglob("*")) == [
        "victim/below",
        "victim/below/whole",
        "victim/whole",
        "victim/x.live",
    ]


@pytest.mark.parametrize("name", ["sent-3", "lost-3-1", "taken-3"])
@pytest.mark.repeats
def test_a_file_in_its_folder_is_skipped_or_reported(queryprof: Run, name: str) -> None:
    os.mkdir("place")
    Path("place", FOLDER).mkdir()
    Path("place", FOLDER, name).write_text("no directory")
    count = record("place/a.qprof", 1)
    result = ship(queryprof, "place")
    if name.startswith("taken"):
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1
        Path("place", FOLDER, name).unlink()
        assert ship(queryprof, "place").returncode == 0
    assert executions("store") == count


def test_a_place_that_is_removed_and_made_again() -> None:
    os.mkdir("place")
    with shipper("place") as one:
        one.run()
        shutil.rmtree("place")
        os.mkdir("place")
        count = record("place/a.qprof", 1)
        one.run()
        assert executions("store") == count
        shutil.rmtree(f"place/{FOLDER}")
        count += record("place/b.qprof", 1)
        one.run()
    assert executions("store") == count
    assert os.listdir("place") == []


def test_a_place_under_another_path(queryprof: Run) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 2)
    os.rename("place", "moved")
    assert ship(queryprof, "moved").returncode == 0
    assert executions("store") == count
    assert os.listdir("moved") == []


@pytest.mark.slow
def test_several_places_of_one_directory(queryprof: Run) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 1) + record("place/b.qprof", 1)
    record("place/c.qprof", 1)
    assert ship(queryprof, "place/a.qprof", "place/b.qprof").returncode == 0
    assert executions("store") == count
    assert {name[:7] for name in os.listdir("place")} == {"c.qprof"}
    assert ship(queryprof, "place", "./place/", "place/c.qprof").returncode == 0
    assert os.listdir("place") == []


@pytest.mark.parametrize("stream", ["/dev/full", "/dev/null"])
@pytest.mark.repeats
def test_a_command_keeps_its_status_without_a_place_for_messages(stream: str) -> None:
    command = [
        QUERYPROF,
        "fleet",
        "ship",
        "--to",
        "store",
        "--",
        sys.executable,
        "-c",
        f"{CALLS}; exit(7)",
    ]
    with open(stream, "w") as errors:
        assert subprocess.run(command, check=False, stderr=errors).returncode == 7
    assert executions("store") == 1


@pytest.mark.slow
def test_a_command_runs_where_another_one_sends(queryprof: Run) -> None:
    os.mkdir("place")
    command = (
        "fleet",
        "ship",
        "--to",
        "store",
        "place",
        "--",
        sys.executable,
        "-c",
        f"{CALLS}; exit(3)",
    )
    with Batches("place").alone():
        result = queryprof(*command)
    assert result.returncode == 3
    assert "the command runs, but nothing is sent" in result.stderr
    assert ship(queryprof, "place").returncode == 0
    assert executions("store") == 1


def test_a_command_runs_where_there_can_be_no_place(queryprof: Run) -> None:
    Path("file").write_text("")
    command = (
        "fleet",
        "ship",
        "--to",
        "store",
        "file/place",
        "--",
        sys.executable,
        "-c",
        "exit(3)",
    )
    result = queryprof(*command)
    assert result.returncode == 3
    assert "the command runs, but nothing is sent" in result.stderr


@pytest.mark.slow
def test_the_place_stays_while_a_process_records_in_it(
    queryprof: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkdir("tmp")
    monkeypatch.setenv("TMPDIR", os.path.abspath("tmp"))
    os.mkfifo("pipe")
    child = (
        "import sqlite3, os; c = sqlite3.connect(':memory:'); c.execute('SELECT 1');"
        " open('ready', 'w').close(); open('pipe').read(); c.execute('SELECT 2')"
    )
    parent = (
        "import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)\n"
        "while not os.path.exists('ready'): time.sleep(0.01)"
    )
    result = queryprof(
        "fleet", "ship", "--to", "store", "--", sys.executable, "-c", parent, child, timeout=60
    )
    assert result.returncode == 0
    assert "processes still record here" in result.stderr
    (place,) = os.listdir("tmp")
    with open("pipe", "w"):
        pass
    for _ in range(200):
        assert ship(queryprof, f"tmp/{place}").returncode == 0
        if Path("store").is_dir() and executions("store") == 2:
            break
    assert executions("store") == 2


@pytest.mark.slow
def test_the_service_ends_by_a_signal() -> None:
    os.mkdir("place")
    record("place/a.qprof", 1)
    with subprocess.Popen(
        [QUERYPROF, "fleet", "ship", "--to", "store", "--every", "1h", "place"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        line = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
    assert line.startswith("queryprof: ")
    assert "sent to store (" in line
