"""The loop that repeats a statement: not a loop that each call of its function goes through once."""

from __future__ import annotations

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.program import Program
from queryprof.model import ENDLESS, CallPath, Frame

pytestmark = pytest.mark.once

COUNT, PAGE = "SELECT count(*) FROM book", "SELECT title FROM book LIMIT 25 OFFSET ?"
VIEW = Frame("view", "/app/app.py", 10)
LIST = Frame("view", "/app/app.py", 12)
LOOPS = {LIST: Frame("view", "/app/app.py", 12), MAIN: Frame(MAIN.function, MAIN.file, 99)}


def loop_of(
    pages: int,
    counts: int,
    loops: dict[Frame, Frame] = LOOPS,
    of_count: CallPath = (VIEW, MAIN),
    of_page: CallPath = (LIST, MAIN),
) -> Frame | None:
    """Return the loop of PAGE, which a comprehension in the view executes."""
    some = (aggregate(PAGE, of_page, count=pages), aggregate(COUNT, of_count, count=counts))
    program = Program(Report(profile_of(*some)), lambda frame, _: loops.get(frame), {})
    (group,) = (one for one in program.all_groups if one.statement == PAGE)
    site = program.innermost_loop(group)
    return site.frame if site else None


@pytest.mark.parametrize(
    ("pages", "counts", "line"),
    [
        (100, 100, 99),
        (100, 110, 99),
        (100, 111, 12),  # something else repeats the count
        (101, 100, 12),
    ],
)
def test_a_query_that_runs_once_per_call(pages: int, counts: int, line: int) -> None:
    loop = loop_of(pages, counts)
    assert loop is not None
    assert loop.line == line


def test_without_a_loop_around_the_function_the_inner_loop_counts() -> None:
    assert loop_of(100, 100, {LIST: LOOPS[LIST]}) == LOOPS[LIST]
    assert loop_of(100, 100, {LIST: LOOPS[LIST], MAIN: ENDLESS}) == LOOPS[LIST]


def test_both_queries_in_loops() -> None:
    assert loop_of(100, 100, {VIEW: LOOPS[LIST], **LOOPS}) == LOOPS[LIST]


def test_queries_of_other_calls_do_not_count() -> None:
    other = Frame("other", "/app/app.py", 50)
    assert loop_of(100, 100, of_count=(VIEW, other)) == LOOPS[LIST]


def test_queries_of_functions_that_the_function_calls() -> None:
    """A path has a limited length: the longer path ends earlier."""
    helper, index = Frame("count_all", "/app/app.py", 30), Frame("index", "/app/app.py", 40)
    paths = {"of_count": (helper, VIEW, index), "of_page": (LIST, index, MAIN)}
    assert loop_of(100, 100, **paths) == LOOPS[MAIN]
    assert loop_of(100, 100, LOOPS | {helper: helper}, **paths) == LOOPS[LIST]
