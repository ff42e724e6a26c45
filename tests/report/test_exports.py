"""The formats of other viewers: they have the same time, and names are only text."""

from __future__ import annotations

import hashlib
import io
import json
import marshal
import pstats
import re
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from analysis.by_hand import MAIN, aggregate, profile_of
from hypothesis import given
from hypothesis import strategies as st
from report.test_hostile_names import HOSTILE
from report.test_hostile_names import profile_of as hostile_profile

from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.model import Frame, Profile
from queryprof.report.export.function_tree import build_function_tree
from queryprof.report.export.functions import Statistics, add_statements_to_statistics
from queryprof.report.export.pstats import pstats_file
from queryprof.report.export.speedscope import speedscope_file
from queryprof.report.export.weights import OTHER, call_path_weights, limit_nodes

SITES = [Frame(name, f"/app/{name[0]}.py", line) for name in ("a", "b", "aa") for line in (7, 3)]
PROFILES = st.lists(
    st.tuples(
        st.sampled_from(["SELECT 1", "SELECT 2", "COMMIT"]),
        st.lists(st.sampled_from(SITES), max_size=4).map(tuple),
        st.integers(1, 10**9),
        st.integers(1, 5),
        st.sampled_from(["execute", "fetchall"]),
    )
).map(
    lambda rows: profile_of(
        *(aggregate(sql, path, ns, operation, count) for sql, path, ns, count, operation in rows)
    )
)


def stats_of(content: bytes) -> dict[Any, Any]:
    found: dict[Any, Any] = marshal.loads(content)  # our own
    return found


def total_ns(profile: Profile) -> int:
    return sum(a.self_ns for a in profile.aggregates)


@pytest.mark.once
@given(PROFILES, st.none() | st.integers(1, 5))
def test_all_of_the_time_is_there(profile: Profile, top: int | None) -> None:
    """This holds in each format, even if functions are hidden, with recursion, and without a call
    path.
    """
    weights = limit_nodes(call_path_weights(profile), top)
    stats = stats_of(pstats_file(weights))
    assert sum(own for _, _, own, _, _ in stats.values()) == pytest.approx(total_ns(profile) / 1e9)
    root = stats["~", 0, "<database time>"]
    assert root[3] == pytest.approx(total_ns(profile) / 1e9)
    assert all(
        own <= cumulative + 1e-9 <= root[3] + 1e-6 for _, _, own, cumulative, _ in stats.values()
    )
    runs = sum(a.count for a in profile.aggregates if a.operation == "execute")
    assert root[1] == runs
    document = json.loads(speedscope_file(weights, "x"))
    (shown,) = document["profiles"]
    assert sum(shown["weights"]) == shown["endValue"] == total_ns(profile)
    frames = len(document["shared"]["frames"])
    assert all(0 <= number < frames for sample in shown["samples"] for number in sample)
    if top is not None:
        assert len({node for weight in weights for node in weight.nodes} - {OTHER}) <= top


def test_pstats_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Functions have their smallest known line, and their callers."""
    site, other = Frame("load", "/app/store.py", 20), Frame("load", "/app/store.py", 12)
    profile = profile_of(
        aggregate("SELECT 1", (site, MAIN), 3 * 10**9, count=4),
        aggregate("SELECT 1", (other, MAIN), 10**9, count=2),
    )
    path = tmp_path / "x.prof"
    path.write_bytes(pstats_file(call_path_weights(profile)))
    found = pstats.Stats(str(path))
    assert found.total_tt == pytest.approx(4)
    found.print_callers()
    shown = capsys.readouterr().out
    assert re.search(r"store\.py:12\(load\).* 6 .* 4\.000 .*main\.py:10\(main\)", shown)
    assert "20(load)" not in shown


def test_functions_begin_where_they_begin(queryprof: Run, script: Callable[[str], Path]) -> None:
    """The line is the code object's. Two functions with the same name are two, and a merge keeps
    them.
    """
    text = "import sqlite3\ndb = sqlite3.connect(':memory:')\n"
    text += (
        "def load(q):\n    pass\n    return db.execute(q)\nfirst = load\n" * 2
        + "first('SELECT 1')\nload('SELECT 2')\n"
    )
    text = text.replace("first = load\n", "keep = first = load\n", 1).replace(
        "\nfirst = load\nfirst(", "\nkeep("
    )
    queryprof("run", "--no-report", "-o", "x.qprof", script(text))
    assert queryprof("merge", "y.qprof", "x.qprof", "x.qprof").returncode == 0
    for trace in ("x.qprof", "y.qprof"):
        nodes = {
            weight.nodes[-2]
            for weight in call_path_weights(read_profile(trace))
            if len(weight.nodes) > 2
        }
        assert {(node.line, node.name) for node in nodes} == {(3, "load"), (7, "load")}


def test_statements_that_begin_alike_stay_two() -> None:
    long = "SELECT " + "x" * 500
    weights = call_path_weights(profile_of(aggregate(long + "1"), aggregate(long + "2")))
    assert len({weight.nodes[-1] for weight in weights}) == 2
    assert len(stats_of(pstats_file(weights))) == 4  # with main() and the root


@pytest.mark.once
@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_only_names(name: str) -> None:
    profile = hostile_profile(name)
    weights = call_path_weights(profile)
    assert json.loads(speedscope_file(weights, name))["name"] == name
    stats_of(pstats_file(weights))


SPEEDSCOPE = "https://registry.npmjs.org/speedscope/-/speedscope-1.25.0.tgz"
SPEEDSCOPE_SHA256 = "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03"


@pytest.fixture(scope="module")
def speedscope_schema() -> Any:
    """Return the schema in speedscope's package."""
    try:
        with urllib.request.urlopen(SPEEDSCOPE, timeout=20) as answer:
            package = answer.read()
    except OSError as error:
        pytest.skip(f"npm's registry cannot be reached: {error}")
    assert hashlib.sha256(package).hexdigest() == SPEEDSCOPE_SHA256
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        schema = archive.extractfile("package/dist/release/file-format-schema.json")
        assert schema
        return json.load(schema)


@pytest.mark.once
def test_speedscope_takes_it(speedscope_schema: Any) -> None:
    """Its own schema accepts many places, hostile names and empty profiles."""
    places = [(Frame(f"f{n}", f"/app/{n % 3}.py", n + 1), MAIN) for n in range(30)]
    profiles = [
        profile_of(*(aggregate(f"SELECT {n % 7}", path, 10**6) for n, path in enumerate(places))),
        *map(hostile_profile, HOSTILE),
        profile_of(),
    ]
    for profile in profiles:
        found = json.loads(speedscope_file(call_path_weights(profile), "queryprof"))
        jsonschema.validate(found, speedscope_schema)


@pytest.mark.once
def test_the_command(queryprof: Run, script: Callable[[str], Path]) -> None:
    """It writes each format. Trace events are in microseconds from the start."""
    program = script(
        "import sqlite3, time\n"
        "db = sqlite3.connect(':memory:')\n"
        "def load():\n"
        "    time.sleep(0.02)\n"
        "    return db.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n'\n"
        "                      ' WHERE i < 100000) SELECT max(i) FROM n').fetchall()\n"
        "load()\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", program)
    for form in ("pstats", "speedscope"):
        done = queryprof("export", "--format", form, "x.qprof")
        assert (done.returncode, done.stderr[:11]) == (0, "written: x."), form
    missing = queryprof("export", "--format", "pstats", "y.qprof")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_a_missing_snakeviz_is_a_one_line_error() -> None:
    code = "import sys; sys.modules['snakeviz'] = None; from queryprof.cli.main import main; main()"
    refused = subprocess.run(
        [sys.executable, "-c", code, "snakeviz", "x.qprof"],
        capture_output=True,
        text=True,
        check=False,
    )
    message = "queryprof: snakeviz is not installed; run: pip install snakeviz\n"
    assert (refused.returncode, refused.stderr) == (2, message)


@pytest.mark.once
def test_snakeviz_opens_it(queryprof: Run, script: Callable[[str], Path]) -> None:
    """The real SnakeViz runs on a free port. Its page has the statement."""
    pytest.importorskip("snakeviz")
    program = script("import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 12345')\n")
    queryprof("run", "--no-report", "-o", "x.qprof", program)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from queryprof.cli.main import main; main()",
        "snakeviz",
        "x.qprof",
        "--",
        "-s",
        "-p",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        shown = next(line for line in server.stdout if "http://" in line)
        page = ""
        for _ in range(100):
            try:
                page = urllib.request.urlopen(re.findall(r"http://\S+", shown)[0]).read().decode()
                break
            except OSError:
                time.sleep(0.1)
        server.terminate()
    assert "SELECT ?" in page
    assert "database time" in page
    with pytest.raises(OSError, match="refused"):  # it ends with the command
        socket.create_connection(("127.0.0.1", port)).close()


PROGRAM = """
import sqlite3, sys, threading
db = sqlite3.connect(":memory:", check_same_thread=False)
class Store:
    def load(self, number):
        total = sum(range(2000))
        return db.execute("SELECT ?", (number,)).fetchall()
def other(number):
    return db.execute("SELECT ? + 1", (number,)).fetchone()
store = Store()
for number in range(200):
    store.load(number)
    other(number)
if sys.argv[1:] == ["thread"]:
    thread = threading.Thread(target=other, args=(1,))
    thread.start()
    thread.join()
if sys.argv[1:] == ["exit"]:
    sys.exit(3)
"""


def test_functions_with_statements_as_leaves(queryprof: Run, script: Callable[[str], Path]) -> None:
    """Below cProfile's times, each statement has its part, by call site."""
    program = script(PROGRAM)
    done = queryprof("run", "--no-report", "--cprofile", "-o", "x.qprof", program, "exit")
    assert (done.returncode, done.stderr) == (3, "functions: x.prof\n")
    found = pstats.Stats("x.prof").stats  # type: ignore[attr-defined]
    by_name = {key[2]: value for key, value in found.items()}
    calls, _, own_s, _, callers = by_name["SELECT ?"]
    assert {key[2] for key in callers} == {"load"}
    assert calls == 400  # execute and fetchall
    assert 0 < own_s < by_name["load"][3]
    assert {key[2] for key in by_name["SELECT ? + ?"][4]} == {"other"}
    assert not any("'execute' of" in name for name in by_name)
    assert by_name["load"][1] == 200


def test_own_times_add_up_to_what_cprofile_measured() -> None:
    """This holds whether the trace has none, some, or other threads' calls."""
    leaf = ("~", 0, "<method 'execute' of 'sqlite3.Cursor' objects>")
    load, main = ("/app/main.py", 8, "main"), ("/app/b.py", 1, "elsewhere")
    statistics: Statistics = {
        leaf: (30, 30, 3.0, 3.0, {load: (20, 20, 2.0, 2.0), main: (10, 10, 1.0, 1.0)}),
        load: (1, 1, 0.5, 2.5, {}),
        main: (1, 1, 0.25, 1.25, {}),
    }
    for count, of_leaf in ((5, 2.5), (20, 1.0), (100, 1.0)):
        profile = profile_of(
            aggregate("A", (MAIN,), 3000, count=count), aggregate("B", (MAIN,), 1000, "fetchall")
        )
        found = stats_of(add_statements_to_statistics(statistics, profile))
        assert sum(own for _, _, own, _, _ in found.values()) == pytest.approx(3.75)
        assert found[leaf][2] == pytest.approx(of_leaf)
        (node,) = [key for key in found if key[2] == "A"]
        assert found[node][2] == pytest.approx(3.0 - of_leaf)
        assert list(found[node][4]) == [load]
    assert stats_of(add_statements_to_statistics(statistics, profile_of())) == statistics


def test_functions_as_a_tree() -> None:
    """Each function's time is below its callers, with statements as leaves."""
    recursive: Statistics = {
        ("m.py", 1, "<module>"): (1, 1, 1.0, 10.0, {}),
        ("m.py", 3, "a"): (1, 1, 2.0, 6.0, {("m.py", 1, "<module>"): (1, 1, 2.0, 6.0)}),
        ("m.py", 5, "b"): (1, 1, 1.0, 3.0, {("m.py", 1, "<module>"): (1, 1, 1.0, 3.0)}),
        ("m.py", 7, "walk"): (
            2,
            9,
            5.0,
            6.0,
            {
                ("m.py", 3, "a"): (1, 6, 3.0, 4.0),
                ("m.py", 5, "b"): (1, 1, 1.0, 2.0),
                ("m.py", 7, "walk"): (0, 2, 1.0, 1.0),
            },
        ),
        ("sql", 1, "SELECT ?"): (3, 3, 1.0, 1.0, {("m.py", 7, "walk"): (3, 3, 1.0, 1.0)}),
    }
    root = build_function_tree(marshal.dumps(recursive))
    assert root.total_ns == 10 * 10**9
    (module,) = root.children_by_time
    assert [(one.name, one.total_ns) for one in module.children_by_time] == [
        ("a", 6 * 10**9),
        ("b", 3 * 10**9),
    ]
    walks = [one.children_by_time[0] for one in module.children_by_time]
    assert [one.total_ns for one in walks] == [4 * 10**9, 2 * 10**9]
    # Its callers' shares: cProfile does not know whose statement it was.
    leaves = [one.children_by_time[0] for one in walks]
    assert [(one.name, one.frame) for one in leaves] == [("SELECT ?", None)] * 2
    assert sum(one.total_ns for one in leaves) == 10**9


@pytest.mark.once
@pytest.mark.parametrize(
    "content", [b"", b"no", marshal.dumps({1: 2}), marshal.dumps({("f", 1, "n"): (1, 2)}), b"{"]
)
@pytest.mark.repeats
def test_no_file_of_cprofile(queryprof: Run, content: bytes) -> None:
    queryprof("run", "--no-report", "-o", "x.qprof", "-c", "import sqlite3; sqlite3.connect('')")
    Path("x.prof").write_bytes(content)
    done = queryprof("html", "x.qprof", "--cprofile", "x.prof")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "queryprof: html: x.prof: not a cProfile file\n"
    assert not Path("x.html").exists()


@pytest.mark.slow
def test_what_cprofile_cannot_see_is_reported(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    program = script(PROGRAM)
    done = queryprof("run", "--no-report", "--cprofile", "-o", "x.qprof", program, "thread")
    assert "cProfile covers only the main thread" in done.stderr
    killed = script("import os, sqlite3\nsqlite3.connect(':memory:')\nos._exit(0)\n", "killed.py")
    done = queryprof("run", "--no-report", "--cprofile", "-o", "y.qprof", killed)
    assert "no function times" in done.stderr
    assert not Path("y.prof").exists()
    assert queryprof("run", "--cprofile", "-o", "/dev/null", program).returncode == 2
    assert [path.name for path in Path().iterdir() if ".parts" in path.name] == []
