"""The questions about a fleet: planted differences are found, and no others."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import statistics
from pathlib import Path
from typing import Any

import pytest
from fleet.fleets import READ, SLOW, Work, add_host

import queryprof as package
from conftest import Run
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

from queryprof.fleet.comparison import compare_versions, interval  # noqa: E402
from queryprof.fleet.duck import Engine, Selection  # noqa: E402  needs DuckDB
from queryprof.fleet.flat import host_windows  # noqa: E402
from queryprof.fleet.location import Directory  # noqa: E402
from queryprof.fleet.names import FleetPlaces  # noqa: E402
from queryprof.fleet.parquet_files import write  # noqa: E402
from queryprof.fleet.question_texts import question_sql  # noqa: E402
from queryprof.fleet.store import directory_place, read_store  # noqa: E402

HOSTS = 10
QUESTIONS = sorted(
    path.stem for path in Path(package.__file__).parent.joinpath("fleet", "questions").glob("*.sql")
)
STEPS, OFTEN, GONE, NEW, PLANNED = (
    f"SELECT {what} FROM t WHERE a = ?" for what in ("steps", "often", "gone", "new", "planned")
)


def answers(directory: str, name: str, selection: Selection = Selection(), **values: Any) -> Any:  # noqa: B008
    engine = Engine(read_store([directory_place(directory)]))
    try:
        return engine.answer(name, selection, **values).records()
    finally:
        engine.close()


def test_one_trace_gives_the_digits_of_its_report() -> None:
    connection = sqlite3.connect("app.db")
    package.install("x.qprof")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    for number in range(300):
        connection.execute("INSERT INTO t VALUES (?, ?)", (number, number % 7))
        connection.execute("SELECT b FROM t WHERE a = ?", (number,)).fetchone()
        if not number % 10:
            connection.execute("SELECT count(*) FROM t GROUP BY b").fetchall()
    connection.commit()
    package.uninstall()
    connection.close()
    profile = read_profile("x.qprof")
    for window in host_windows(profile):
        write(Directory("out"), window)
    ranking = Report(profile).ranking
    found = {
        (one["statement"], one["site"]): one
        for one in answers("out", "ranking", by="few", top=1000)
    }
    assert len(found) == ranking.count > 3
    places = FleetPlaces(profile)
    for one in ranking.bottlenecks:
        frame = one.site.frame
        assert frame
        row = found[one.statement, f"{places.file(frame.file)}:{frame.line} {frame.function}"]
        totals = one.totals
        assert row["rank"] == one.rank
        assert row["seconds"] == pytest.approx(totals.self_ns / 1e9, rel=1e-12)
        assert row["share"] == pytest.approx(one.share, rel=1e-12)
        assert (row["calls"], row["executions"]) == (totals.calls, totals.executions)
        for figure in ("p50_ns", "p95_ns", "p99_ns", "max_ns"):
            assert row[figure] == getattr(totals, figure), (figure, one.statement)
        assert (row["errors"], row["fetched_rows"]) == (totals.errors, totals.rows)
        assert (row["vm_steps"] or None) == totals.vm_steps_sum
    assert row["vital_groups"] == ranking.vital


def a_canary(hosts: int = HOSTS) -> None:
    for host in range(hosts):
        varied = 100 + host % 3  # hosts differ by 2%
        usual = {
            READ: Work(1000, 10 * varied),
            STEPS: Work(100, 1000, 100),
            SLOW: Work(1000, 100 * varied),
            PLANNED: Work(50, 1000),
        }
        add_host(
            Path("out"),
            f"old-{host}",
            {**usual, OFTEN: Work(100, 50, span="GET /"), GONE: Work(5, 10)},
            version="1",
            spans={"GET /": 100},
        )
        later = {
            **usual,
            SLOW: Work(1000, 130 * varied),
            STEPS: Work(100, 1000, 160),
            PLANNED: Work(50, 1000, plan="SCAN t"),
            OFTEN: Work(1100, 50, span="GET /"),
            NEW: Work(7, 10),
        }
        add_host(Path("out"), f"new-{host}", later, version="2", spans={"GET /": 100})


def test_a_canary(queryprof: Run) -> None:
    a_canary()
    result = queryprof("fleet", "compare", "1", "2", "out", "--format", "json")
    found = json.loads(result.stdout)
    assert result.returncode == 1
    assert [one["statement"] for one in found["slower"]] == [SLOW]
    assert found["slower"][0]["ratio"] == pytest.approx(1.3)
    assert found["slower"][0]["low"] < 1.3 < found["slower"][0]["high"]
    assert found["slower"][0]["cost_seconds_a_day"] == pytest.approx(
        sum(1000 * 30 * (100 + host % 3) for host in range(HOSTS)) / 1e9
    )
    assert [one["statement"] for one in found["more_steps"]] == [STEPS]
    (often,) = found["requests"]
    assert (often["statement"], often["each_before"], often["each_after"]) == (OFTEN, 1, 11)
    assert [(one["statement"], one["plan"]) for one in found["plans"]] == [(PLANNED, "SCAN t")]
    assert {(one["statement"], one["change"]) for one in found["statements"]} == {
        (NEW, "new"),
        (GONE, "gone"),
    }
    assert found["faster"] == []
    worse = {"time": 1, "vmsteps": 1, "counts": 1, "plans": 1, **_findings(found)}
    assert found["worse"] == worse
    table = queryprof("fleet", "compare", "1", "2", "out")
    assert table.returncode == 1
    text = " ".join(table.stdout.split())
    assert "Slower with version 2 than with 1: 1" in text
    assert "x1.3 (x1.2" in text
    assert "worse: time 1, vmsteps 1, counts 1, plans 1" in text


def _findings(found: dict[str, Any]) -> dict[str, int]:
    return {"findings": len(found["findings"])} if found["findings"] else {}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--fail-on", "none"), 0),
        (("--fail-on", "plans"), 1),
        (("--fail-on", "time", "--fail-on", "plans"), 1),
    ],
)
@pytest.mark.repeats
def test_what_fails(queryprof: Run, arguments: tuple[str, ...], status: int) -> None:
    a_canary()
    assert queryprof("fleet", "compare", "1", "2", "out", *arguments).returncode == status
    same = queryprof("fleet", "compare", "1", "1", "out", *arguments)
    assert same.returncode == 0, same.stdout
    assert "nothing got worse" in same.stdout


def verdict_of(statement: str) -> str:
    engine = Engine(read_store([directory_place("out")]))
    found = compare_versions(engine, Selection(), "1", "2")
    engine.close()
    for verdict in ("slower", "faster"):
        if statement in {one["statement"] for one in getattr(found, verdict)}:
            return verdict
    return "unclear" if found.unclear else "same"


@pytest.mark.parametrize(("hosts", "verdict"), [(7, "unclear"), (8, "slower")])
@pytest.mark.repeats
def test_few_hosts_say_nothing_of_times(hosts: int, verdict: str) -> None:
    a_canary(hosts)
    assert verdict_of(SLOW) == verdict


@pytest.mark.parametrize(
    ("factor", "verdict"), [(104, "same"), (107, "slower"), (97, "same"), (93, "faster")]
)
@pytest.mark.repeats
def test_a_difference_counts_from_five_percent_on(factor: int, verdict: str) -> None:
    for host in range(HOSTS):
        for version, part in (("1", 100), ("2", factor)):
            work = Work(100, 1000 * part + host * 100)
            add_host(Path("out"), f"{version}-{host}", {READ: work}, version=version)
    assert verdict_of(READ) == verdict


def moments(hosts: int, mean: float, variance: float) -> dict[str, Any]:
    sides = {"before": (hosts, 0.0, variance), "after": (hosts, mean, variance)}
    return {
        f"{name}_{side}": value
        for side, values in sides.items()
        for name, value in zip(("hosts", "time_mean", "time_variance"), values, strict=True)
    }


def test_intervals_are_welchs() -> None:
    """R's t.test, two samples of 10, means 0 and 1, variances 1: 1 -+ 2.100922 * 0.4472136."""
    found = interval(moments(10, 1.0, 1.0), "time", 1)
    assert found
    assert math.log(found.ratio) == 1.0
    assert math.log(found.low) == pytest.approx(1 - 2.100922 * 0.4472136, abs=1e-6)
    many = interval(moments(10, 1.0, 1.0), "time", 100)
    assert many
    assert many.low < found.low < found.high < many.high
    assert interval(moments(7, 1.0, 1.0), "time", 1) is None


@pytest.mark.slow
def test_equal_versions_of_noisy_hosts_are_seldom_told_apart() -> None:
    """Of 200 comparisons (100 statements, 10 hosts per side), at most 5% report a statement."""
    draw, alarms = random.Random(1), 0
    for _ in range(200):
        wrong = 0
        for _ in range(100):
            sides = [[draw.gauss(0.0, 0.3) for _ in range(10)] for _ in range(2)]
            row = {
                f"{name}_{side}": value
                for side, values in zip(("before", "after"), sides, strict=True)
                for name, value in (
                    ("hosts", 10),
                    ("time_mean", statistics.fmean(values)),
                    ("time_variance", statistics.variance(values)),
                )
            }
            found = interval(row, "time", 100)
            wrong += found is not None and found.low > 1.05
        alarms += wrong > 0
    assert alarms <= 10


def test_hosts_that_differ_too_much_say_nothing() -> None:
    for host in range(HOSTS):
        for version in ("1", "2"):
            slow = 50 if version == "2" and host < 2 else 1
            add_host(
                Path("out"), f"{version}-{host}", {READ: Work(100, 1000 * slow)}, version=version
            )
    assert verdict_of(READ) == "unclear"


def test_one_execution_is_no_ten_hosts() -> None:
    for host in range(HOSTS):
        add_host(Path("out"), f"a{host}", {READ: Work(100, 100_000)}, version="1")
        work = Work(0 if host else 1, 150_000)
        add_host(Path("out"), f"b{host}", {READ: work, SLOW: Work(1, 1)}, version="2")
    assert verdict_of(READ) == "unclear"


@pytest.mark.slow
def test_services_are_not_mixed(queryprof: Run) -> None:
    for host in range(3):
        add_host(Path("out"), f"h{host}", {READ: Work(100, 10)}, service="shop")
        add_host(Path("out"), f"h{host}", {READ: Work(100, 1000)}, service="bill")
    for question_of in (["outliers"], ["trend"], ["compare", "1", "1"], ["plans"]):
        result = queryprof("fleet", *question_of, "out")
        assert (result.returncode, result.stdout) == (2, "")
        assert "several services: choose one with --where service=NAME: bill, shop" in result.stderr
        assert queryprof("fleet", *question_of, "out", "--where", "service=shop").returncode == 0
    rows = answers("out", "ranking", by="host", top=10)
    assert sorted((one["service"], one["host"]) for one in rows) == sorted(
        (service, f"h{host}") for service in ("shop", "bill") for host in range(3)
    )


def test_a_changed_text_is_no_loop() -> None:
    for version, text in (("1", READ), ("2", SLOW)):
        work = Work(100, 10, span="GET /")
        add_host(Path("out"), f"h{version}", {text: work}, version=version, spans={"GET /": 100})
    assert answers("out", "requests", before="1", after="2") == []


def test_one_slow_day_is_no_trend() -> None:
    for day in range(12):
        work = Work(100, 1300 if day == 8 else 1000)
        add_host(Path("out"), "h", {READ: work}, day=day)
    assert answers("out", "trend") == []


@pytest.mark.parametrize(("often", "is_more"), [(170, False), (171, True)])
def test_a_fifth_and_a_half_more_in_each_span(often: int, is_more: bool) -> None:
    for version, count in (("1", 100), ("2", often)):
        work = Work(count, 10, span="GET /")
        add_host(Path("out"), f"h{version}", {READ: work}, version=version, spans={"GET /": 100})
    assert len(answers("out", "requests", before="1", after="2")) == is_more


@pytest.mark.parametrize(
    ("executions", "factor", "hosts", "is_found"),
    [(20, 31, 5, True), (19, 31, 5, False), (20, 30, 5, False), (20, 31, 3, True)],
)
@pytest.mark.repeats
def test_outliers(executions: int, factor: int, hosts: int, is_found: bool) -> None:
    for host in range(hosts):
        work = Work(executions, 1000 * (factor if host == 2 else 10))
        add_host(Path("out"), f"h{host}", {READ: work, SLOW: Work(100, 10)})
    found = answers("out", "outliers")
    assert [one["host"] for one in found] == ["h2"] * is_found
    if is_found:
        (row,) = found
        assert row["times"] == pytest.approx(3.1)
        assert row["lost_seconds"] == pytest.approx(20 * 21_000 / 1e9)


def test_two_hosts_have_no_usual_one() -> None:
    add_host(Path("out"), "a", {READ: Work(100, 10)})
    add_host(Path("out"), "b", {READ: Work(100, 1000)})
    assert answers("out", "outliers") == []


@pytest.mark.parametrize(("later_ns", "is_found"), [(1200, False), (1250, True)])
@pytest.mark.repeats
def test_trend(later_ns: int, is_found: bool) -> None:
    for day in range(10):
        version = "1" if day < 8 else "2"
        work = Work(100, 1000 if day < 8 else later_ns)
        add_host(Path("out"), "h", {READ: work, SLOW: Work(100, 50)}, version=version, day=day)
    found = answers("out", "trend")
    assert [one["statement"] for one in found] == [READ] * is_found
    if is_found:
        (row,) = found
        assert (str(row["since_day"]), row["version"]) == ("2026-11-09", "2")
        assert row["cost_seconds"] == pytest.approx(2 * 100 * 250 / 1e9)


def test_plans(queryprof: Run) -> None:
    for host in range(4):
        plan = "SCAN t" if host == 2 else "SEARCH t"
        add_host(Path("out"), f"h{host}", {READ: Work(10, 10, plan=plan), SLOW: Work(10, 10)})
    found = answers("out", "plans")
    assert [(one["plan"], one["hosts"]) for one in found] == [("SEARCH t", 3), ("SCAN t", 1)]
    text = queryprof("fleet", "plans", "out").stdout
    assert "1 host (h2): SCAN t" in text


def test_the_vital_few(queryprof: Run) -> None:
    for host in range(3):
        add_host(
            Path("out"),
            f"h{host}",
            {READ: Work(1000, 9000), SLOW: Work(10, 100), STEPS: Work(10, 50)},
        )
    (row,) = answers("out", "ranking", by="few", top=0)
    assert (row["statement"], row["hosts"], row["vital_groups"]) == (READ, 3, 1)
    assert (row["calls"], row["seconds"]) == (3000, pytest.approx(0.027))
    middle_ns = 8959.0  # of the bucket of 9,000 ns
    assert (row["p50_ns"], row["p99_ns"], row["max_ns"]) == (middle_ns, middle_ns, 9000)
    hosts = answers("out", "ranking", by="host", top=10)
    assert [one["host"] for one in hosts] == ["h0", "h1", "h2"]
    assert {one["statements"] for one in hosts} == {3}
    result = queryprof("fleet", "report", "out")
    assert "The vital few: 1 of 3 statement and line pairs" in result.stdout
    assert "db.py:7 load" in result.stdout
    assert "2 more: --format json" in result.stdout
    (site,) = json.loads(
        queryprof("fleet", "report", "out", "--by", "site", "--format", "json").stdout
    )
    assert (site["site"], site["statements"], site["first_seen"]) == (
        "shop/db.py:7 load",
        3,
        "2026-11-01T00:00:00+00:00",
    )


def test_findings() -> None:
    for host in range(3):
        scan = {READ: Work(1000, 10_000_000, 2_000_000, "SCAN t", "GET /")}
        version = "1" if host else "0"
        add_host(Path("out"), f"h{host}", scan, version=version, spans={"GET /": 5})
    found = answers("out", "findings")
    assert found
    for one in found:
        assert one["hosts"] == 3


@pytest.mark.parametrize("name", QUESTIONS)
def test_one_text_for_two_engines(name: str) -> None:
    """The SQL avoids everything that only one of DuckDB and Spark supports."""
    text = question_sql(name)
    words = text.upper().replace("(", " ( ").replace(",", " , ").split()
    for word in ("QUALIFY", "FILTER", "LIMIT", "LIST", "UNNEST", "EXPLODE", "ILIKE", "::"):
        assert word not in words, word
    assert text.startswith("-- ")
    assert "\nWITH " in text
    body = text[text.rindex("ORDER BY") :]
    names = ("_id", "host", "identity", "key", "environment", "kind")
    assert any(one in body for one in names)
