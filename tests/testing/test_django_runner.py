"""Django's own test runner: its tests are compared with a baseline, which pytest shares."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from testing.django_project import FILES

pytest.importorskip("django")
pytest.importorskip("pytest_django")
pytestmark = pytest.mark.once

RUNNER = "--testrunner=queryprof.testing.django_runner.QueryprofRunner"
BASELINE = Path("queryprof-baseline.json")


@pytest.fixture(autouse=True)
def _project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.lstrip())


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def manage(*arguments, **environment):
    return run("manage.py", "test", RUNNER, *arguments, **environment)


def run_pytest(*arguments):
    # Django's plugin is off in these tests' own settings.
    plugins = {
        "PYTEST_PLUGINS": "queryprof.pytest_plugin,pytest_django.plugin",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return run("-m", "pytest", "-q", *arguments, **plugins)


@pytest.fixture(scope="module")
def first_baseline(tmp_path_factory):
    """Return the project's baseline, as saved by the first run."""
    place = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        place.joinpath(name).parent.mkdir(exist_ok=True)
        place.joinpath(name).write_text(text.lstrip())
    command = [sys.executable, "manage.py", "test", RUNNER, "--queryprof-save"]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return place.joinpath(BASELINE).read_bytes()


@pytest.fixture
def baseline(_project, first_baseline):
    BASELINE.write_bytes(first_baseline)


def saved():
    return json.loads(BASELINE.read_text())["tests"]


@pytest.mark.slow
def test_one_baseline_serves_both_runners(baseline):
    by_django = BASELINE.read_bytes()
    assert set(saved()) == {
        "shop/tests.py::Books::test_list",
        "shop/tests.py::Limited::test_list",
        "shop/tests.py::Flushed::test_one",
        "shop/tests.py::Failing::test_own",
    }
    checked = run_pytest("--queryprof-check")
    assert "4 tests compared with the baseline: none are worse" in checked.stdout
    BASELINE.unlink()
    assert run_pytest("--queryprof-save").returncode == 0
    assert BASELINE.read_bytes() == by_django
    done = manage("--queryprof-check")
    assert (done.returncode, done.stderr.count("OK")) == (0, 1)
    assert "4 tests compared with the baseline: none are worse" in done.stdout


@pytest.mark.parametrize("parallel", [(), ("--parallel", "2")])
@pytest.mark.repeats
def test_a_query_in_a_loop_fails_the_check(parallel, baseline):
    done = manage("--queryprof-check", *parallel, SLOW="1", FREE="1")
    assert done.returncode == 1
    assert "FAIL: test_list (shop.tests.Books.test_list)" in done.stderr
    assert "FAILED (failures=2)" in done.stderr
    assert "does more database work than its baseline: a new statement" in done.stderr
    assert "20 x books.<locals>.<genexpr> shop/urls.py:8" in done.stderr
    assert "django_runner.py" not in done.stderr
    assert "4 tests compared with the baseline: 2 are worse" in done.stdout
    assert "to accept this, run manage.py test --queryprof-save" in done.stdout


def test_the_fix_of_a_query_in_a_loop_passes():
    """One statement replaces two others, and no figure of the test is higher."""
    manage("--queryprof-save", SLOW="1", FREE="1")
    done = manage("--queryprof-check", FREE="1")
    assert done.returncode == 0
    assert "2 tests better than the baseline" in done.stdout


def test_a_baseline_without_its_use_is_an_error():
    done = manage("--queryprof-baseline", "other.json")
    assert done.returncode == 2
    assert "needs --queryprof-save or --queryprof-check" in done.stderr


@pytest.mark.slow
def test_a_parallel_run_saves_the_same(baseline):
    alone = BASELINE.read_bytes()
    manage("--queryprof-save", "--parallel", "2")
    assert BASELINE.read_bytes() == alone


@pytest.mark.slow
def test_limits_hold_in_every_run():
    done = manage(SLOW="1")
    assert done.returncode == 1
    assert "FAILED (failures=1)" in done.stderr
    assert "AssertionError: over the limit: 21 queries, queries=1:" in done.stderr
    assert "queryprof" not in done.stdout


@pytest.mark.slow
def test_a_failed_test_keeps_its_figures_and_a_part_keeps_the_rest(baseline):
    before = saved()
    done = manage("--queryprof-save", BREAK="1")
    assert (done.returncode, saved()) == (1, before)
    tests = Path("shop/tests.py")
    tests.write_text(tests.read_text().replace("test_one", "test_other"))
    manage("shop.tests.Books", "--queryprof-save")
    assert saved() == before
    manage("--queryprof-save")
    assert set(saved()) ^ set(before) == {
        "shop/tests.py::Flushed::test_one",
        "shop/tests.py::Flushed::test_other",
    }


@pytest.mark.slow
def test_a_pattern_of_files_is_a_part(baseline):
    """In a partial run, an unreadable baseline is not overwritten."""
    broken = "<<<<<<< HEAD\n" + BASELINE.read_text()
    BASELINE.write_text(broken)
    assert manage("--queryprof-save", "-p", "tests.py").returncode == 1
    assert BASELINE.read_text() == broken
    assert manage("--queryprof-save").returncode == 0
    assert saved()


@pytest.mark.slow
def test_a_test_that_ends_the_recording_is_not_compared(baseline):
    tests = Path("shop/tests.py")
    ends = "Author.objects.count(); queryprof.uninstall()\n        if os"
    tests.write_text(tests.read_text().replace("Author.objects.count()\n        if os", ends))
    done = manage("--queryprof-check")
    assert done.returncode == 1
    assert "the recording ended inside" in done.stderr + done.stdout


@pytest.mark.slow
def test_a_check_that_sees_nothing_fails(baseline):
    empty = "from django.test import SimpleTestCase\n\nclass Books(SimpleTestCase):\n    def test_list(self): pass\n"
    Path("shop/tests.py").write_text(empty)
    done = manage("--queryprof-check")
    assert (done.returncode, "this check checked nothing" in done.stdout) == (1, True)


@pytest.mark.slow
def test_a_check_of_skipped_tests_or_of_none_fails(baseline):
    none = manage("--queryprof-check", "-k", "zzz")
    assert "no test was found: this check checked nothing" in none.stdout
    assert none.returncode
    tests = Path("shop/tests.py")
    found = re.sub(
        r"^class ",
        "from unittest import skip\n@skip('')\nclass ",
        tests.read_text(),
        flags=re.MULTILINE,
    )
    tests.write_text(found)
    done = manage("--queryprof-check")
    assert (done.returncode, "this check checked nothing" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, ("--queryprof-check",), "there is no baseline yet; make one with --queryprof-save"),
        ("{", ("--queryprof-check",), "not valid JSON"),
        ("<<<<<<< x", ("--queryprof-check",), "has merge conflict markers"),
        ("{}", ("--queryprof-check", "--queryprof-save"), "use only one"),
    ],
)
@pytest.mark.slow
def test_what_is_wrong_is_one_line(content, arguments, message):
    if content is not None:
        BASELINE.write_text(content)
    done = manage(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_without_an_option_it_is_djangos_runner():
    done = manage()
    assert (done.returncode, "queryprof" in done.stdout) == (0, False)
    shown = manage("--queryprof")
    assert "most executions" in shown.stdout
    assert "baseline" not in shown.stdout
