"""A limit holds however late its marker comes: it is looked for when the test runs. One that comes
too late to be held fails the test, and says why.
"""

from __future__ import annotations

import pytest

TEST = """
import sqlite3
def test_loop(request):
    connection = sqlite3.connect(":memory:")
    for _ in range(20):
        connection.execute("SELECT 1")
    connection.close()
"""
ADD = "add_marker(pytest.mark.queryprof(max_repeats=4))"
WAYS = {
    "a fixture": (
        f"import pytest\n@pytest.fixture(autouse=True)\ndef limit(request): request.node.{ADD}\n"
    ),
    "a hook before the test": f"import pytest\ndef pytest_runtest_setup(item): item.{ADD}\n",
    "a hook after all others": (
        "import pytest\n@pytest.hookimpl(trylast=True)\n"
        f"def pytest_collection_modifyitems(items):\n    for item in items: item.{ADD}\n"
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.repeats
def test_a_limit_of_a_late_marker_holds(pytester: pytest.Pytester, way: str) -> None:
    pytester.makepyfile(TEST)
    pytester.makeconftest(WAYS[way])
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("*over the limit: repeated from one line*")


def test_a_limit_of_another_plugin_holds(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TEST, plug=WAYS["a hook after all others"])
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "plug").assert_outcomes(failed=1)


def test_a_marker_that_the_test_adds_itself_is_too_late(pytester: pytest.Pytester) -> None:
    late = TEST.replace("    connection.close()", f"    connection.close()\n    request.node.{ADD}")
    pytester.makepyfile(f"import pytest\n{late}")
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("*queryprof did not count the queries*")
