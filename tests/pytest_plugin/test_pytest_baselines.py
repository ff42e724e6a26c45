"""The content of a baseline after a partial run, and checks that must not pass by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run

import queryprof
from queryprof.testing.baseline_file import read_baseline

pytestmark = pytest.mark.once

run = pytest_runs.run

SUITE = """
import sqlite3
import pytest
import queryprof

con = sqlite3.connect(":memory:", check_same_thread=False)
con.execute("CREATE TABLE t (a)")

def q(times):
    for _ in range(times):
        con.execute("SELECT a FROM t").fetchall()

@pytest.fixture
def guard(queryprof):
    with queryprof.at_most(2):
        yield

def test_one():
    q({one})

def test_two():
    q(2)

def test_none():
    q({none})
"""
BASELINE = Path("queryprof-baseline.json")
ALL = {"test_a.py::test_one", "test_a.py::test_two", "test_a.py::test_none"}


def write(more: str = "", one: int = 1, none: int = 0) -> None:
    Path("test_a.py").write_text(SUITE.format(one=one, none=none) + more)


def saved() -> dict[str, object]:
    return dict(read_baseline(str(BASELINE)).tests)


@pytest.mark.parametrize(
    "chosen",
    [["test_a.py::test_one"], ["-k", "one"], ["-x"], ["--deselect", "test_a.py::test_two"]],
    ids=str,
)
@pytest.mark.repeats
def test_what_did_not_run_keeps_its_figures(run: Run, chosen: list[str]) -> None:
    write()
    assert run("--queryprof-save").returncode == 0
    assert set(saved()) == ALL
    before = saved()
    write("\ndef test_zz():\n    assert False\n" * (chosen == ["-x"]))
    run(*chosen, "--queryprof-save")
    assert saved() == before


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.repeats
def test_a_test_that_is_gone_leaves_the_baseline(run: Run, workers: tuple[str, ...]) -> None:
    write()
    run("--queryprof-save")
    write("\nrenamed = test_two\ndel test_two\ntest_three = renamed\n")
    assert run("--queryprof-save", *workers).returncode == 0
    assert set(saved()) == ALL - {"test_a.py::test_two"} | {"test_a.py::test_three"}


@pytest.mark.parametrize(
    "content",
    [
        '{"format_version": 2,',
        '<<<<<<< ours\n"format_version"',
        '{"format_version": 99, "tests": {}}',
    ],
)
@pytest.mark.repeats
def test_a_part_is_not_saved_over_what_cannot_be_read(run: Run, content: str) -> None:
    write()
    BASELINE.write_text(content)
    assert run("test_a.py::test_one", "--queryprof-save").returncode == 1
    assert BASELINE.read_text() == content
    assert run("test_a.py", "--queryprof-save").returncode == 1
    assert run("--queryprof-save").returncode == 0
    assert set(saved()) == ALL


def test_a_test_without_queries_is_held_to_none(run: Run) -> None:
    write()
    run("--queryprof-save")
    write(none=500)
    result = run("--queryprof-check")
    assert (result.returncode, "1 failed, 2 passed" in result.stdout) == (1, True)


def test_a_check_that_compares_nothing_fails(run: Run) -> None:
    write()
    run("--queryprof-save")
    text = BASELINE.read_text().replace("test_a.py", "elsewhere/test_a.py")
    BASELINE.write_text(text)
    result = run("--queryprof-check")
    assert result.returncode == 1
    assert "no test of this run is in the baseline" in result.stdout
    # A new test alone has no earlier result to compare with.
    assert run("test_a.py::test_one", "--queryprof-check").returncode == 0


@pytest.mark.parametrize(("times", "failed"), [(2, 0), (3, 1)])
def test_a_fixture_may_hold_the_test(run: Run, times: int, failed: int) -> None:
    write(f"\ndef test_guarded(guard):\n    q({times})\n")
    result = run("test_a.py::test_guarded")
    assert result.returncode == failed
    assert ("over the limit: 3 queries, queries=2:" in result.stdout) == bool(failed)


@pytest.mark.parametrize(
    "how", ["queryprof.uninstall()", "queryprof.uninstall(); queryprof.install('x.qprof')"]
)
def test_a_test_that_ends_the_recording_cannot_be_checked(run: Run, how: str) -> None:
    write(
        f"\n@pytest.mark.queryprof(max_queries=2)\ndef test_ends():\n    q(5)\n    {how}\n    q(5)\n"
    )
    result = run("test_a.py::test_ends")
    assert result.returncode == 1
    assert "the recording ended inside" in result.stdout
    queryprof.uninstall()  # pytest ran in this process


def test_markers_add_up_and_the_nearest_counts(run: Run) -> None:
    write("""
pytestmark = pytest.mark.queryprof(max_queries=4)

@pytest.mark.queryprof(max_rows=10)
class TestIt:
    def test_both(self):
        q(5)

    @pytest.mark.queryprof(max_queries=5)
    def test_nearest(self):
        q(5)
""")
    result = run("test_a.py::TestIt")
    assert "1 failed, 1 passed" in result.stdout
    assert "5 queries, max_queries=4" in result.stdout


def test_limits_hold_after_many_different_statements(run: Run) -> None:
    """A recording can keep this many apart: another one begins before that."""
    write("""
import queryprof.testing.meter as meter
meter.MAX_STATEMENTS = 50

def test_many():
    for number in range(100):
        con.execute(f"SELECT a AS c{number} FROM t").fetchall()

@pytest.mark.queryprof(max_queries=3)
def test_after():
    for number in range(4):
        con.execute(f"SELECT a AS d{number} FROM t").fetchall()
""")
    result = run("--queryprof")
    assert "over the limit: 4 queries, max_queries=3" in result.stdout
    assert "1 failed" in result.stdout


@pytest.mark.parametrize(
    ("skipped", "chosen", "status"),
    [
        (("one", "two"), (), 1),  # no test with queries ran
        (("one",), (), 0),
        (("one", "two"), ("-k", "none"), 0),  # the selected tests have none
        (("one", "two"), ("-k", "one"), 1),
    ],
)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=str)
@pytest.mark.repeats
def test_a_check_of_skipped_tests_checks_nothing(
    run: Run,
    skipped: tuple[str, ...],
    chosen: tuple[str, ...],
    status: int,
    workers: tuple[str, ...],
) -> None:
    write()
    run("--queryprof-save")
    text = Path("test_a.py").read_text()
    for name in skipped:
        text = text.replace(f"def test_{name}", f"@pytest.mark.skip\ndef test_{name}")
    Path("test_a.py").write_text(text)
    result = run("--queryprof-check", *chosen, *workers)
    assert result.returncode == status
    assert ("this check checked nothing" in result.stdout) == bool(status)


@pytest.mark.parametrize("size", [1, 5, 40, -5])
@pytest.mark.repeats
def test_a_truncated_baseline_can_be_saved_again(run: Run, size: int) -> None:
    write()
    run("--queryprof-save")
    whole = BASELINE.read_text()
    BASELINE.write_text(whole[:size])
    error = run("--queryprof-check").stderr
    assert "not valid JSON" in error
    if "remove it" in error:
        BASELINE.unlink()
    assert run("--queryprof-save").returncode == 0
    assert BASELINE.read_text() == whole
