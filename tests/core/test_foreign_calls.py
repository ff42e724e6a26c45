"""Calls in a line that the program makes for something else than its query."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from core.line_programs import ITEM, LEAST, Run, Times, recorder, write_library

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python 3.11 reports no lines of one function"
)

SLOW_NS = 200_000
"""What `mapper.get_slowly` takes after the query."""


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


FOREIGN = {
    "own function": "pause(mapper.get_slowly(n))",
    "own function before": "pause(n) + mapper.get_slowly(n)",
    "own method": "Own().pause(mapper.get_slowly(n))",
    "standard library": "(time.sleep(0.02), mapper.get_slowly(n))",
    "other package": "other.pause(mapper.get_slowly(n))",
    "attribute afterwards": "(pause(n), mapper.lazy.Lazy(n).value)",
    "own query": "(audit(n), mapper.get_slowly(n))",
    "comprehension": "[pause(mapper.get_slowly(n)) for n in range(40)]; break",
}


@pytest.mark.parametrize("expression", FOREIGN)
@pytest.mark.repeats
def test_the_time_of_foreign_calls_is_not_the_lines(times: Times, expression: str) -> None:
    """Without the query, the program still makes the other calls of its line."""
    pause = "import time\ndef pause(n):\n    time.sleep(0.02)\n    return n\n"
    write_library("__init__.py", pause, "other")
    lazy = "import mapper\nclass Lazy:\n    def __init__(self, n): self.n = n\n"
    lazy += "    value = property(lambda self: mapper.get_slowly(self.n))\n"
    Path("site-packages/mapper").mkdir(parents=True)
    Path("site-packages/mapper/lazy.py").write_text(lazy)
    program = f"""
        import other, mapper.lazy, time
        def pause(n):
            time.sleep(0.02)
            return n
        def audit(n):
            pause(n)
            mapper.db.execute("SELECT 1").fetchone()
        class Own:
            def pause(self, n):
                return pause(n)
        for n in range(40):
            {FOREIGN[expression]}
        """
    one = times(program)[ITEM]
    assert one.passes >= LEAST
    assert one.passes * SLOW_NS <= one.ns < one.passes * 20_000_000


OF_THE_QUERY = {
    "shorter than a third": "mapper.get_slowly(spent(n))",
    "of the mapper": "mapper.made.spent(mapper.get(n))",
    "of an iterator": "sum_of(mapper.made.result(n))",
}


@pytest.mark.parametrize("expression", OF_THE_QUERY)
@pytest.mark.repeats
def test_calls_that_belong_to_the_query_count(times: Times, expression: str) -> None:
    """Short calls may build the statement. Calls in the mapper's own package create its objects.
    Both count.
    """
    write_library(
        "made.py",
        "import mapper, time\n"
        "def spent(n, ns=250_000):\n"
        "    start = time.perf_counter_ns()\n"
        "    while time.perf_counter_ns() - start < ns: pass\n"
        "    return n\n"
        "def result(n):\n"
        "    return map(spent, [mapper.get(n)])\n",
    )
    program = f"""
        import mapper.made
        def spent(n): return mapper.made.spent(n, 50_000)
        def sum_of(numbers): return sum(numbers)
        for n in range(300):
            {OF_THE_QUERY[expression]}
        """
    one = times(program)[ITEM]
    assert one.passes >= LEAST
    assert one.ns >= one.passes * 250_000


def test_the_main_module_is_as_it_was(times: Times) -> None:
    """A callable without a file is classified by its own globals. No module is imported for it."""
    program = """
        import sys
        exec("def load(n): return n", made := {})
        class Api: pass
        sys.modules["__main__"] = api = Api()
        for n in range(40):
            mapper.get(made["load"](n))
        assert sys.modules["__main__"] is api
        """
    assert times(program)[ITEM].passes >= LEAST


def test_a_pass_whose_end_is_not_seen_does_not_count(times: Times) -> None:
    """A watch ends after 4,000 events. The mapper's work in the last pass comes later."""
    program = """
        def nothing(): pass
        for n in range(40):
            [nothing() for _ in range(5000)]; found = mapper.get_slowly(n)
        """
    found = times(program)
    assert ITEM not in found or found[ITEM].ns >= found[ITEM].passes * SLOW_NS
