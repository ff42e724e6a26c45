"""Reports on event loops: names of figures, sentences about loops, and golden files."""

from __future__ import annotations

import io
from dataclasses import replace

import jsonschema
import pytest
from analysis.by_hand import golden, json_of, process

from queryprof.analysis.loops import cumulative_shares, stall_category
from queryprof.analysis.report import Report
from queryprof.analysis.summary import summarize_durations
from queryprof.core._core import histogram_bucket
from queryprof.model import Cause, Distribution, Frame, Loop, Profile, Stall, Step, Thread
from queryprof.report.json.schema import document_schema
from queryprof.report.places import Places
from queryprof.report.terminal.loops import lag_chart, print_loops
from queryprof.report.terminal.report import print_report

pytestmark = pytest.mark.once

MS = 1_000_000
SEARCH = Frame("search", "/app/api.py", 41)
ASK = Frame("ask", "/app/db.py", 7)
TICK = Frame("tick", "/app/clock.py", 5)
NOTHING = Frame("", "", 0)
LIKE = "SELECT count(*) FROM item WHERE title LIKE ?"


def distribution(*durations_ns: int) -> Distribution:
    buckets: dict[int, int] = {}
    for ns in durations_ns:
        buckets[histogram_bucket(ns)] = buckets.get(histogram_bucket(ns), 0) + 1
    return Distribution(len(durations_ns), sum(durations_ns), max(durations_ns, default=0), buckets)


def stall(**changes: object) -> Stall:
    values = {
        "function": SEARCH,
        "path": (ASK, SEARCH),
        "stack": (ASK, SEARCH),
        "count": 212,
        "total_ns": 212 * 84 * MS,
        "max_ns": 190 * MS,
        "database_ns": 205 * 84 * MS,
        "gc_ns": 0,
        "gil_ns": MS,
        "cpu_ns": 100 * MS,
        "cpu_of_ns": 110 * MS,
        "delayed": 420,
        "delay_ns": 420 * 61 * MS,
        "samples": 300,
        "causes": (Cause(LIKE, (ASK, SEARCH), 424, 205 * 84 * MS),),
    }
    return Stall(**{**values, **changes})  # type: ignore[arg-type]


def loop(**changes: object) -> Loop:
    values = {
        "kind": "asyncio",
        "thread": Thread(1, "MainThread"),
        "has_steps": True,
        "runs": 1,
        "run_ns": 60_000 * MS,
        "busy_ns": 20_000 * MS,
        "steps": 5000,
        "waiting": 7500,
        "waiting_max": 12,
        "timer_lag": distribution(*range(MS, 60 * MS, MS)),
        "beat_lag": distribution(*[MS // 10] * 400, *range(MS, 90 * MS, MS)),
        "functions": (
            Step(
                SEARCH,
                distribution(*[84 * MS] * 212),
                205 * 84 * MS,
                0,
                (Cause(LIKE, (ASK, SEARCH), 424, 205 * 84 * MS),),
            ),
            Step(TICK, distribution(*[20_000] * 4788), 0, 0, ()),
        ),
        "stalls": (
            stall(),
            stall(
                path=(TICK,),
                function=TICK,
                count=1,
                total_ns=120 * MS,
                max_ns=120 * MS,
                database_ns=0,
                cpu_ns=0,
                delayed=0,
                delay_ns=0,
                causes=(),
            ),
        ),
    }
    return Loop(**{**values, **changes})  # type: ignore[arg-type]


def profile_of(*loops: Loop) -> Profile:
    return Profile((process(),), (), loops=loops)


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_on_loops(width: int) -> None:
    text = io.StringIO()
    print_loops(Report(profile_of(loop())), file=text, width=width)
    golden(f"loops-{width}.txt", text.getvalue())
    assert max(map(len, text.getvalue().splitlines())) <= width


def test_the_first_screen_names_the_worst_stalls() -> None:
    text = io.StringIO()
    print_report(Report(profile_of(loop())), file=text, width=80)
    words = " ".join(text.getvalue().split())
    assert "The event loop stalled in 2 places (--show loops lists all)" in words
    assert (
        "ask() db.py:7 blocked the loop for 84.0 ms on average, 212 times, 96.7% of it in" in words
    )
    assert "420 callbacks that were due meanwhile waited 61.0 ms on average" in words
    assert "Move it off the loop (aiosqlite, or asyncio.to_thread)." in words


def test_what_cannot_be_seen_is_unknown() -> None:
    unseen = loop(
        kind="uvloop",
        has_steps=False,
        busy_ns=0,
        steps=0,
        waiting=0,
        functions=(),
        timer_lag=Distribution(),
        stalls=(stall(function=NOTHING, path=(), causes=()),),
    )
    text = io.StringIO()
    print_loops(Report(profile_of(unseen)), file=text, width=80)
    assert "busy ?, steps unknown" in text.getvalue()
    document = json_of(Report(profile_of(unseen)))["loops"][0]
    assert document["utilization"] is document["steps"] is document["waiting_mean"] is None
    assert document["timer_lag"]["mean_ns"] is None
    assert document["stalls"][0]["function"] is None


def test_many_short_steps_in_a_row_are_reported() -> None:
    """There is no stall, but the loop is late: the report shows the sum of the steps."""
    busy = loop(stalls=(), beat_lag=distribution(*[40 * MS] * 50))
    text = io.StringIO()
    print_loops(Report(profile_of(busy)), file=text, width=80)
    assert "many steps in a row add up" in " ".join(text.getvalue().split())
    text = io.StringIO()
    print_loops(
        Report(profile_of(loop(stalls=(), beat_lag=distribution(1000)))), file=text, width=80
    )
    assert "No step reached the threshold" in text.getvalue()
    text = io.StringIO()
    print_loops(
        Report(profile_of(loop(stalls=(), beat_lag=distribution(1000), has_steps=False))),
        file=text,
        width=80,
    )
    assert "No step reached the threshold" not in text.getvalue()
    assert "No stall was seen." in text.getvalue()


def test_no_loop() -> None:
    text = io.StringIO()
    print_loops(Report(profile_of()), file=text, width=80)
    assert text.getvalue() == "No event loop ran.\n"


def test_json_follows_its_schema() -> None:
    schema = document_schema("report")
    document = json_of(Report(profile_of(loop())))
    jsonschema.validate(document, schema)
    (found,) = document["loops"]
    assert [s["category"] for s in found["stalls"]] == ["database", "waiting"]
    assert len(json_of(Report(profile_of(loop()), top=1))["loops"][0]["stalls"]) == 1


@pytest.mark.parametrize(
    ("changes", "category"),
    [
        ({}, "database"),
        ({"database_ns": 0, "gc_ns": 212 * 60 * MS}, "garbage collection"),
        ({"database_ns": 0, "cpu_ns": 10 * MS}, "waiting"),
        ({"database_ns": 0}, "computing"),
        ({"database_ns": 0, "gil_ns": 212 * 60 * MS}, "C code that holds the GIL"),
        ({"database_ns": 0, "cpu_ns": 0, "cpu_of_ns": 0}, "unknown"),
    ],
)
def test_categories(changes: dict[str, object], category: str) -> None:
    assert category == stall_category(stall(**changes))


def test_the_worst_loop_comes_first() -> None:
    quiet = loop(thread=Thread(1, "quiet"), stalls=())
    found = Report(profile_of(quiet, loop())).loops
    assert [f.loop.thread.name for f in found] == ["MainThread", "quiet"]
    assert sum(s.share for s in found[0].stalls) == pytest.approx(1)


def test_a_distribution_function_rises_to_one() -> None:
    points = list(cumulative_shares(distribution(5, 100, 100, 7000)))
    assert [share for _, share in points] == [0.25, 0.75, 1.0]
    assert points[-1][0] <= 7000
    assert summarize_durations(Distribution()).p50_ns is None


def test_a_chart_of_two_loops_tells_them_apart_without_colour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    lags = {"before": distribution(*range(MS, 50 * MS, MS)), "after": distribution(1000, 90_000)}
    text = lag_chart(lags, 80)
    assert "\x1b" not in text
    assert text.count("b") > 5
    assert text.count("a") > 2
    assert max(map(len, text.splitlines())) <= 80


def test_places_of_several_processes() -> None:
    """Loops of a merged trace have their process in the name."""
    other = replace(process(2), directory="/app")
    profile = Profile((process(), other), (), loops=(loop(), loop(thread=Thread(2, "MainThread"))))
    text = io.StringIO()
    print_loops(Report(profile), file=text, width=100)
    assert "asyncio in MainThread, process 101" in text.getvalue()
    assert "asyncio in MainThread, process 102" in text.getvalue()
    assert Places(profile).where(ASK) == "db.py:7"
