"""Comparisons: work exactly, times with statistics, and the command line's gate."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from analysis.by_hand import aggregate, process, profile_of
from hypothesis import given
from hypothesis import strategies as st

from conftest import Run
from queryprof.comparing.comparison import compare, regressions
from queryprof.comparing.comparison_result import Comparison, MetricChange, Verdict
from queryprof.model import (
    Distribution,
    Frame,
    Interval,
    Loop,
    Plan,
    Profile,
    Stall,
    Thread,
)
from queryprof.report.json.comparison import comparison_json
from queryprof.report.json.schema import document_schema
from queryprof.report.places import Places
from queryprof.report.terminal.comparison import print_comparison
from queryprof.report.text.comparison import run_totals_sentence, verdict_cautions
from queryprof.statistics.bootstrap import ratio_interval

pytestmark = pytest.mark.once

Script = Callable[..., Path]
LOAD = Frame("load", "/app/main.py", 7)


def change_of(comparison: Comparison, statement: str, metric: str) -> MetricChange:
    found = next(c for c in comparison.statements if c.statement == statement)
    return next(c for c in found.changes if c.metric == metric)


def test_equal_runs_are_the_same() -> None:
    """Nothing got worse or better."""
    run = profile_of(aggregate("SELECT a"), aggregate("SELECT b", count=3))
    comparison = compare([run], [run])
    assert not regressions(comparison, ("counts", "vmsteps", "time"))
    assert {c.verdict for s in comparison.statements for c in s.changes if c.gate != "time"} == {
        Verdict.SAME
    }


def test_new_and_gone_statements_come_first() -> None:
    """New statements come first, then gone ones, then the others, worst first."""
    before = profile_of(aggregate("SELECT known"), aggregate("SELECT gone"))
    after = profile_of(aggregate("SELECT new"), aggregate("SELECT known", count=2))
    comparison = compare([before], [after])
    assert [(c.kind, c.statement) for c in comparison.statements] == [
        ("new", "SELECT new"),
        ("gone", "SELECT gone"),
        ("known", "SELECT known"),
    ]
    assert [
        r.statement for r in regressions(comparison, ("counts",)) if not isinstance(r, MetricChange)
    ] == ["SELECT new", "SELECT known"]


def test_the_call_site_whose_executions_rose_comes_first() -> None:
    """It comes first even if its line moved, or if a busier call site did not change."""
    moved = dataclasses.replace(LOAD, line=70, file="/elsewhere/main.py")
    busy = Frame("report", "/app/main.py", 90)
    before = profile_of(
        aggregate("SELECT a", (LOAD,), count=5), aggregate("SELECT a", (busy,), count=50)
    )
    after = profile_of(
        aggregate("SELECT a", (moved,), count=9), aggregate("SELECT a", (busy,), count=50)
    )
    (changed,) = compare([before], [after]).statements
    assert (changed.sites[0].site.frame, changed.sites[0].before, changed.sites[0].after) == (
        moved,
        5,
        9,
    )


def test_what_was_counted_without_a_call_names_no_place() -> None:
    """SQLite's counters of executions that ended after their records had been written have no
    place.
    """
    late = aggregate("SELECT 1", path=(), ns=0)._replace(count=0)
    (change,) = compare([profile_of(late)], [profile_of(late)]).statements
    assert change.sites == ()


def test_one_run_gives_no_verdict_on_time() -> None:
    """With one run per side, twice the time may be chance."""
    before, after = profile_of(aggregate("S", ns=100)), profile_of(aggregate("S", ns=200))
    assert change_of(compare([before], [after]), "S", "database_ns").verdict == Verdict.UNCLEAR
    assert not regressions(compare([before], [after]), ("time",))


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.5, Verdict.WORSE), (0.5, Verdict.BETTER), (1.0, Verdict.SAME)]
)
def test_several_runs_do(factor: float, verdict: Verdict) -> None:
    """A difference beyond the noise is marked; a smaller one is not."""
    times = [1000, 1004, 998, 1001, 996, 1002]
    before = [profile_of(aggregate("S", ns=ns)) for ns in times]
    after = [profile_of(aggregate("S", ns=int(ns * factor))) for ns in reversed(times)]
    change = change_of(compare(before, after), "S", "database_ns")
    assert change.verdict == verdict
    assert change.interval is not None
    assert change.interval[0] <= factor <= change.interval[1]


@pytest.mark.parametrize(
    ("runs", "overlapping", "apart_from_it"),
    [
        (5, Verdict.UNCLEAR, Verdict.UNCLEAR),
        (6, Verdict.UNCLEAR, Verdict.WORSE),
        (7, Verdict.WORSE, Verdict.WORSE),
    ],
)
def test_few_runs_must_not_overlap(runs: int, overlapping: Verdict, apart_from_it: Verdict) -> None:
    """One run of the slower side was faster than one run of the other side."""
    before = [profile_of(aggregate("S", ns=1000 + run)) for run in range(runs)]
    after = [profile_of(aggregate("S", ns=1500 if run else 1000 + runs - 2)) for run in range(runs)]
    assert change_of(compare(before, after), "S", "database_ns").verdict == overlapping
    apart = [*after[1:], profile_of(aggregate("S", ns=1000 + runs))]
    assert change_of(compare(before, apart), "S", "database_ns").verdict == apart_from_it


@pytest.mark.parametrize(("all_ns", "verdict"), [(48_000, Verdict.WORSE), (52_000, Verdict.SAME)])
def test_a_statement_whose_time_does_not_matter_is_the_same(all_ns: int, verdict: Verdict) -> None:
    """500 ns do not count, although they are more than 1% of the run's database time."""
    before = [profile_of(aggregate("S", ns=500), aggregate("T", ns=all_ns - 750)) for _ in range(6)]
    after = [profile_of(aggregate("S", ns=1000), aggregate("T", ns=all_ns - 750)) for _ in range(6)]
    change = change_of(compare(before, after), "S", "database_ns")
    assert (change.verdict, round(change.ratio or 0)) == (verdict, 2)


def test_vm_steps_may_drift_between_versions_of_sqlite_alone() -> None:
    """With the same SQLite version the tolerance is 0."""

    def run(steps: int, version: str) -> Profile:
        one = aggregate("S")
        one = one._replace(vm_steps=steps)
        return Profile((process(sqlite_version=version),), (one,))

    verdicts = [
        change_of(compare([run(100, "3.40")], [run(steps, version)]), "S", "vm_steps").verdict
        for steps, version in ((101, "3.40"), (104, "3.46"), (106, "3.46"), (94, "3.40"))
    ]
    assert verdicts == [Verdict.WORSE, Verdict.SAME, Verdict.WORSE, Verdict.BETTER]
    for steps, verdict in ((109, Verdict.SAME), (111, Verdict.WORSE)):
        found = compare([run(100, "3.40")], [run(steps, "3.46")], 0.1)
        assert change_of(found, "S", "vm_steps").verdict is verdict


def test_unknown_is_never_a_verdict() -> None:
    """If one side has no counters, there is no verdict about them."""
    one = aggregate("S")
    blind = one._replace(counted=0, vm_steps=0)
    change = change_of(compare([profile_of(one)], [profile_of(blind)]), "S", "vm_steps")
    assert (change.after, change.verdict) == (None, Verdict.UNCLEAR)


@given(
    st.lists(st.floats(1, 1e9), min_size=4, max_size=8),
    st.lists(st.floats(1, 1e9), min_size=4, max_size=8),
)
def test_the_interval_is_in_order_and_in_reach(before: list[float], after: list[float]) -> None:
    """The interval lies between the smallest and the largest ratio of the runs."""
    interval = ratio_interval(before, after)
    assert interval is not None
    low, high = interval
    assert min(after) / max(before) * 0.999 <= low <= high <= max(after) / min(before) * 1.001


PROGRAM = """
import sqlite3
c = sqlite3.connect(":memory:")
c.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
{index}
c.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 50) for i in range(2000)])
c.commit()
def load(x):
    return c.execute("SELECT a FROM t WHERE {column} = ?", (x,)).fetchall()
def main():
    for x in range({times}):
        load(x)
main()
"""
INDEX = 'c.execute("CREATE INDEX i ON t (b)")'


def record(queryprof: Run, script: Script, name: str, **changes: object) -> str:
    values = {"index": INDEX, "times": 20, "column": "b", **changes}
    path = script(PROGRAM.format(**values), f"{name}.py")
    assert queryprof("run", "--no-report", "-o", f"{name}.qprof", path).returncode == 0
    return f"{name}.qprof"


def test_regressions_fail_the_command(queryprof: Run, script: Script) -> None:
    """The exit status is 1, and the output has the statement and its line."""
    base = record(queryprof, script, "base")
    for name, changes in {
        "dropped_index": {"index": ""},
        "more_queries": {"times": 25},
        "wrapped_column": {"column": "b + 0"},
    }.items():
        after = record(queryprof, script, name, **changes)
        result = queryprof("compare", base, after)
        assert result.returncode == 1, name
        assert "worse" in result.stdout
        assert f"load() {name}.py:9" in result.stdout


@pytest.mark.slow
def test_harmless_changes_pass(queryprof: Run, script: Script) -> None:
    """Reformatted SQL, a renamed function and a second run give exit status 0."""
    base = record(queryprof, script, "base")
    text = Path("base.py").read_text()
    script(text.replace("SELECT a FROM t WHERE", "select a  from t /* all */ where"), "b.py")
    script(text.replace("load", "fetch"), "c.py")
    for name in ("base", "b", "c"):
        queryprof("run", "--no-report", "-o", f"{name}2.qprof", f"{name}.py")
        result = queryprof("compare", base, f"{name}2.qprof")
        assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_formats(queryprof: Run, script: Script) -> None:
    """JSON, JUnit and GitHub annotations can be parsed."""
    base, after = record(queryprof, script, "base"), record(queryprof, script, "after", times=25)

    def output(form: str) -> str:
        result = queryprof("compare", base, after, "--format", form)
        assert result.returncode == 1
        return result.stdout

    document = json.loads(output("json"))
    worst = document["statements"][0]
    assert (worst["statement"], worst["verdict"]) == ("SELECT a FROM t WHERE b = ?", "worse")
    assert worst["call_sites"][0]["line"] == 9
    suite = ET.fromstring(output("junit"))
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) > 0
    assert "::error file=after.py,line=9,title=queryprof::SELECT a" in output("github")
    assert "| worse | `SELECT a FROM t WHERE b = ?` |" in output("markdown")


@pytest.mark.slow
def test_what_fails_can_be_chosen(queryprof: Run, script: Script) -> None:
    """--fail-on selects the gates. With nothing selected, the command only reports."""
    base, after = record(queryprof, script, "base"), record(queryprof, script, "after", times=25)
    assert queryprof("compare", base, after, "--fail-on", "time").returncode == 0
    assert queryprof("compare", base, after, "--fail-on", "none").returncode == 0
    assert queryprof("compare", base, after, "--fail-on", "vmsteps").returncode == 1


@pytest.mark.slow
def test_directories_and_lists_are_sides(queryprof: Run, script: Script) -> None:
    """A directory stands for its traces; :: separates the two sides."""
    Path("a").mkdir()
    for number in range(2):
        Path(record(queryprof, script, f"run{number}")).rename(f"a/{number}.qprof")
    result = queryprof("compare", "a", "a")
    assert (result.returncode, "2 and 2 runs" in result.stdout) == (0, True)
    result = queryprof("compare", "a/0.qprof", "::", "a/0.qprof", "a/1.qprof")
    assert (result.returncode, "1 and 2 runs" in result.stdout) == (0, True)


@pytest.mark.slow
def test_bad_input_is_one_line(queryprof: Run, script: Script) -> None:
    """The exit status is 2, and the message says what to do."""
    empty = script("pass", "empty.py")
    queryprof("run", "--no-report", "-o", "empty.qprof", empty)
    base = record(queryprof, script, "base")
    Path("nothing").mkdir()
    for arguments in (
        (base,),
        (base, "missing.qprof"),
        (base, "nothing"),
        (base, "empty.qprof"),
        ("empty.qprof", base),
        (base, base, base),
        (base, "empty.py"),
    ):
        result = queryprof("compare", *arguments)
        assert result.returncode == 2, arguments
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert result.stderr.startswith("queryprof: ")


def test_event_loops_are_compared() -> None:
    """The comparison has their mean lag and the time of their stalls, if a loop ran."""
    thread = Thread(1, "MainThread")

    def loop(lag_ns: int, stall_ns: int) -> Loop:
        lag = Distribution(10, 10 * lag_ns, lag_ns, {})
        stall = Stall(
            Frame("f", "/app/a.py", 1), (), (), 1, stall_ns, stall_ns, 0, 0, 0, 0, 0, 0, 0, 0, ()
        )
        return Loop(
            "asyncio", thread, True, 1, 10**9, 0, 10, 0, 0, Distribution(), lag, (), (stall,)
        )

    def run(lag_ns: int, stall_ns: int) -> Profile:
        return dataclasses.replace(
            profile_of(aggregate("SELECT 1")), loops=(loop(lag_ns, stall_ns),)
        )

    before = [run(10_000_000 + i, 500_000_000 + i) for i in range(6)]
    after = [run(1_000_000 + i, 50_000_000 + i) for i in range(6)]
    changes = {change.metric: change for change in compare(before, after).whole}
    assert changes["loop_lag_ns"].verdict is Verdict.BETTER
    assert changes["stall_ns"].verdict is Verdict.BETTER
    changes = {change.metric: change for change in compare(after, before).whole}
    assert changes["loop_lag_ns"].verdict is Verdict.WORSE
    plain = profile_of(aggregate("SELECT 1"))
    assert "loop_lag_ns" not in {c.metric for c in compare([plain], [plain]).whole}


def with_plan(run: Profile, tree: str) -> Profile:
    return dataclasses.replace(run, plans=(Plan("SELECT a", "/srv/x.db", tree),))


def test_a_worse_plan_is_a_regression() -> None:
    """It counts even if nothing else got worse. A better plan and an unknown plan do not count."""
    run = profile_of(aggregate("SELECT a"))
    search = with_plan(run, "SEARCH t USING INDEX i (a=?)\n")
    scan = with_plan(run, "SCAN TABLE t\n")
    worse = regressions(compare([search], [scan]), ("plans",))
    assert [change.statement for change in worse if not isinstance(change, MetricChange)] == [
        "SELECT a"
    ]
    assert not regressions(compare([search], [scan]), ("counts", "vmsteps"))
    for before, after in (
        (scan, search),
        (search, run),
        (run, scan),
        (scan, with_plan(run, "SCAN t\n")),
    ):
        assert not regressions(compare([before], [after]), ("plans",))


def test_the_json_follows_its_schema() -> None:
    """The schema also covers plans, unknown figures and new statements."""
    schema = document_schema("comparison")
    before = with_plan(profile_of(aggregate("SELECT a"), aggregate("SELECT gone")), "SCAN t\n")
    after = profile_of(aggregate("SELECT a", count=2), aggregate("SELECT new"))
    for sides in (([before], [after]), ([before] * 4, [after] * 4)):
        jsonschema.validate(json.loads(comparison_json(compare(*sides))), schema)


def test_two_charts_on_the_same_axes() -> None:
    """The charts are side by side, within the width. Runs that are too short have none."""

    def course(seconds: int, share: float) -> Profile:
        run = profile_of(aggregate("SELECT a"))
        start = run.processes[0].start_unix_ns
        width = 10**9
        intervals = [Interval(start + i * width, 1, 1, int(share * width)) for i in range(seconds)]
        return dataclasses.replace(run, timeline_width_ns=width, timeline=tuple(intervals))

    for width in (80, 160):
        text = io.StringIO()
        sides = [course(6, 0.2)], [course(12, 0.8)]
        print_comparison(compare(*sides), Places(*sides[0], *sides[1]), text, width=width)
        lines = text.getvalue().splitlines()
        titles = next(line for line in lines if "(before)" in line)
        assert "(after)" in titles
        assert titles.index("(after)") >= width // 2
        assert sum(line.count("0.80 |") for line in lines) == 2, "the same scale on both sides"
        assert max(map(len, lines)) <= width
    text = io.StringIO()
    print_comparison(compare([course(1, 0.2)], [course(9, 0.2)]), Places(), text, width=80)
    assert "(before)" not in text.getvalue()


def test_the_overall_result_comes_first() -> None:
    """The first line has the overall result, or says that the programs have nothing in common."""
    one = compare([profile_of(aggregate("S", ns=1000))], [profile_of(aggregate("S", ns=500))])
    assert (
        run_totals_sentence(one)
        == "in total: vm steps 5 -> 5 (=), database 1.00 µs -> 500 ns (-50.0%)"
    )
    assert not any("the same program" in shown for shown in verdict_cautions(one))
    other = compare([profile_of(aggregate("S"))], [profile_of(aggregate("T"))])
    assert any("the same program" in shown for shown in verdict_cautions(other))
