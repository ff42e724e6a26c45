"""The page as a file: it equals the report, is inert, and reveals nothing about the machine."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from analysis.by_hand import MAIN, aggregate, json_of, process, profile_of
from report.test_hostile_names import HOSTILE
from report.test_hostile_names import profile_of as hostile_profile

from conftest import Run
from queryprof.analysis.report import Report
from queryprof.model import Frame, Profile
from queryprof.report.html.html_report import LARGE_BYTES, MARK, SCRIPTS, STYLES, html_page
from queryprof.report.html.page_data import page_data
from queryprof.report.inert import escape_control_characters

pytestmark = pytest.mark.once


def page(profile: Profile, before: Profile | None = None) -> dict[str, Any]:
    return page_data(Report(profile), (), None, Report(before) if before else None)


def data_of(text: str) -> dict[str, Any]:
    """Return the data in a page."""
    encoding, content = re.findall(
        r'<script id="data" type="application/json"([^>]*)>([^<]*)</script>', text
    )[0]
    if encoding:
        content = zlib.decompress(base64.b64decode(content)).decode()
    found: dict[str, Any] = json.loads(content)
    return found


def test_the_figures_are_those_of_the_json_report() -> None:
    paths = [(Frame(f"f{n}", f"/app/{n % 3}.py", n + 1), MAIN) for n in range(30)]
    profile = profile_of(
        *(
            aggregate(f"SELECT {n % 7}", path, 10**6 * (n + 1), count=n + 1)
            for n, path in enumerate(paths)
        )
    )
    found, document = page(profile), json_of(Report(profile))
    assert found["facts"]["vital"] == document["vital_few"]
    rows = {row["name"]: row["totals"] for row in document["views"]["statement"]}
    statements = found["statements"]
    shown = [found["strings"][number] for number in statements["text"]]
    assert shown == sorted(rows, key=lambda s: -rows[s]["self_ns"])
    for number, statement in enumerate(shown):
        for name in ("self_ns", "executions", "p50_ns", "p95_ns", "p99_ns", "max_ns", "errors"):
            assert statements[name][number] == rows[statement][name], name
        assert sum(ns for _, ns, *_ in statements["sites"][number]) == rows[statement]["self_ns"]
    for number, one in zip(found["pareto"]["self_ns"], document["bottlenecks"], strict=False):
        assert number == one["totals"]["self_ns"]


def test_single_requests_are_those_of_the_json_report() -> None:
    """They are shown call by call. If the trace has none, the page says so."""
    profile = hostile_profile("GET /teams")
    found, document = page(profile), json_of(Report(profile))
    for shown, message in zip(found["slowest"], document["slowest_spans"], strict=True):
        assert found["strings"][shown["name"]] == message["name"] == "GET /teams"
        for name in ("duration_ns", "database_ns", "executions", "failed", "status"):
            assert shown[name] == message[name], name
        for name in ("start_ns", "end_ns", "executions", "self_ns", "rows"):
            assert shown["runs"][name] == [run[name] for run in message["runs"]], name
    (loop,) = found["loops"]
    (event,) = document["loops"][0]["stall_events"]
    assert loop["events"]["duration_ns"] == [event["duration_ns"]]
    assert page(replace(profile, slow_spans=()))["slowest"] == []
    assert "individual spans" in found["not_recorded"]


@pytest.mark.slow
def test_the_tree_adds_up() -> None:
    """Functions too small for a node are combined into "(smaller)"."""
    paths = [(Frame(f"f{n}", "/app/a.py", n + 1), MAIN) for n in range(3000)]
    found = page(profile_of(*(aggregate("SELECT 1", path, 10**6) for path in paths)))["tree"]
    parents, spent = found["parent"], found["self_ns"]
    assert found["name"].count(found["smaller"]) >= 1
    inner = {parent for parent in parents if parent >= 0}
    for node in inner:
        assert sum(ns for ns, of in zip(spent, parents, strict=True) if of == node) == spent[node]
    assert spent[0] == 3000 * 10**6
    assert len(spent) < 100


def test_many_sites_of_a_statement_are_one_line_more() -> None:
    paths = [(Frame(f"f{n}", "/app/a.py", n + 1), MAIN) for n in range(90)]
    found = page(profile_of(*(aggregate("SELECT 1", path) for path in paths)))["statements"]
    assert (len(found["sites"][0]), found["site_count"][0]) == (20, 90)


def test_what_changed_against_another_recording() -> None:
    moved = Frame("load", "/app/a.py", 70)
    before = profile_of(aggregate("SELECT 1", (Frame("load", "/app/a.py", 12), MAIN), 500))
    after = profile_of(aggregate("SELECT 1", (moved, MAIN), 900), aggregate("SELECT 2", ns=100))
    found = page(after, before=before)
    assert found["statements"]["before_ns"] == [500, None]
    assert found["pareto"]["before_ns"] == [500, None]
    names = [found["strings"][name].partition(" ")[0] for name in found["tree"]["name"]]
    known = dict(zip(names, found["tree"]["before_ns"], strict=True))
    assert (known["load()"], known[""]) == (500, 500)
    assert "before_ns" not in page(after)["statements"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, _: object) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("name", HOSTILE)
def test_text_of_the_program_is_no_markup(name: str) -> None:
    """For any name, the page's source has the same elements, and the name as text."""

    def tags(text: str) -> list[str]:
        parser = Tags()
        parser.feed(text)
        return parser.found

    found = html_page(page(hostile_profile(name)), name)
    assert tags(found) == tags(html_page(page(hostile_profile("plain")), "plain"))
    assert found.count("</script>") == 2
    assert escape_control_characters(name)[:200] in "\n".join(data_of(found)["strings"])


@pytest.mark.slow
def test_large_data_is_packed() -> None:
    profile = profile_of(*(aggregate(f"SELECT {'x' * 40}{n}") for n in range(4000)))
    found = html_page(page(profile), "large")
    assert 'data-encoding="deflate"' in found
    assert len(found) < LARGE_BYTES < len(json.dumps(page(profile)))
    assert len(data_of(found)["statements"]["text"]) == 4000


def test_no_path_shows_whose_machine_it_was() -> None:
    home = "/home/elsewhere/secret-client"
    frames = [Frame("main", f"{home}/app/main.py", 1), Frame("load", f"{home}/lib/load.py", 2)]
    profile = Profile(
        (process(directory="/srv/app", argv=(f"{home}/bin/python", "/srv/app/run.py", "-v")),),
        (aggregate("SELECT 1", (frames[1], frames[0])),),
    )
    found = html_page(page(profile), "title")
    assert "elsewhere" not in found
    strings = data_of(found)["strings"]
    assert {"lib/load.py", "bin/python run.py -v"} < set(strings)


def test_scripts_make_no_code_of_text() -> None:
    folder = files("queryprof.report.html").joinpath("page")
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(
        [
            "cards.css",
            "timeline.css",
            *(f"{name}.js" for name in SCRIPTS),
            *(f"{name}.css" for name in STYLES),
        ]
    )
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|style=|https?:(?!//www\.w3\.org/2000/svg)"
    )
    for name in names:
        text = folder.joinpath(name).read_text()
        assert not forbidden.search(text), name
    assert len(html_page(page(profile_of()), "empty")) < 70_000


def test_an_empty_trace_has_a_page() -> None:
    found = page(profile_of())
    assert found["facts"]["places"] == 0
    assert "No database calls were recorded." in found["strings"]


@pytest.mark.slow
def test_the_command(queryprof: Run, script: Callable[[str], Path], tmp_path: Path) -> None:
    """It writes next to the trace, replaces only its own pages, and shows source that has not
    changed.
    """
    program = script(
        "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 12345')  # here\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", program)
    assert queryprof("html", "x.qprof").returncode == 0
    text = Path("x.html").read_text()
    assert MARK in text[:200]
    assert Path("x.html").stat().st_mode & 0o777 == 0o600
    assert "# here" in "".join(data_of(text)["strings"])
    assert "# here" not in "".join(
        data_of(queryprof("html", "--no-source", "-o", "-", "x.qprof").stdout)["strings"]
    )
    assert queryprof("html", "x.qprof").returncode == 0  # its own page is replaced
    Path("x.html").write_text("mine")
    refused = queryprof("html", "x.qprof")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert Path("x.html").read_text() == "mine"
    Path("x.html").unlink()
    assert queryprof("html", "x.qprof").returncode == 0
    program.write_text(program.read_text() + "# more\n")  # the lines may have moved
    queryprof("html", "x.qprof")
    assert "# here" not in "".join(data_of(Path("x.html").read_text())["strings"])
    assert queryprof("html", "x.qprof", "--against", "x.qprof").returncode == 0
    assert [p.name for p in Path().iterdir() if p.name.startswith(".queryprof")] == []


@pytest.mark.parametrize("content", [None, b"no trace", b"SQLite format 3\x00" + b"\x00" * 100])
def test_bad_input_leaves_no_page(queryprof: Run, content: bytes | None) -> None:
    if content is not None:
        Path("x.qprof").write_bytes(content)
    refused = queryprof("html", "x.qprof")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert not Path("x.html").exists()


@pytest.mark.slow
def test_a_program_that_still_runs_has_a_page(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    """All its numbers are of the same moment."""
    program = script(
        "import sqlite3, subprocess, sys\n"
        "sqlite3.connect(':memory:').execute('SELECT 1')\n"
        "page = 'from queryprof.cli.main import main; main()'\n"
        "command = [sys.executable, '-c', page, 'html', 'x.qprof', '-o', 'y.html']\n"
        "subprocess.run(command, check=True)\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", program)
    strings = data_of(Path("y.html").read_text())["strings"]
    assert any("is still running" in text for text in strings)
    assert "SELECT ?" in strings
