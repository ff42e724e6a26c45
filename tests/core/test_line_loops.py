"""The time of a line that loops over the rows of its query, which its library makes one by one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from core.line_programs import Run, Times, recorder, write_library

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python 3.11 reports no lines of one function"
)

ROWS = 20_000
ROW_NS = 10_000
"""What the library takes for an object, and for nothing else."""

LIBRARY = f"""
import time
import mapper

def objects(fetch_size=1, chunk_size=1):
    rows = mapper.db.execute("SELECT a.id FROM item AS a, item AS b LIMIT {ROWS}")
    time.sleep(0.1)
    while fetched := rows.fetchmany(fetch_size) if fetch_size > 1 else rows.fetchone():
        found = fetched if fetch_size > 1 else [fetched]
        for start in range(0, len(found), chunk_size):
            chunk = found[start:start + chunk_size]
            began = time.perf_counter_ns()
            while time.perf_counter_ns() - began < len(chunk) * {ROW_NS}: pass
            yield chunk
"""

LOOPS = {
    "for": "for one in mapper.rows.objects():\n    total += one[0][0]",
    "rows fetched together": "for one in mapper.rows.objects(500): total += one[0][0]",
    "groups of rows": "for some in mapper.rows.objects(500, 100):\n    for one in some:\n"
    "        total += one[0]",
    "list": "[one[0][0] for one in mapper.rows.objects()]",
    "generator expression": "sum(one[0][0] for one in mapper.rows.objects())",
}


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.repeats
def test_the_rows_of_a_long_loop_are_timed_in_part(times: Times, loop: str) -> None:
    write_library("rows.py", LIBRARY)
    found = times("import mapper.rows\ntotal = 0\n" + LOOPS[loop])
    (one,) = (each for text, each in found.items() if text.startswith("SELECT a.id"))
    assert 0 < one.loop_rows < ROWS
    assert one.loop_rows * ROW_NS <= one.loop_ns
    assert one.ns - one.loop_ns >= 100_000_000  # the time before the first row is not a row's
    if loop == "groups of rows":
        assert one.loop_rows >= 500  # five groups of a hundred, not five rows


def test_a_short_loop_is_timed_whole(times: Times) -> None:
    write_library("rows.py", LIBRARY.replace(str(ROWS), "100"))
    found = times("import mapper.rows\nfor one in mapper.rows.objects(): pass\nprint(one)")
    (one,) = (each for text, each in found.items() if text.startswith("SELECT a.id"))
    assert one.ns >= 100_000_000 + 100 * ROW_NS


def test_whole_loops_and_one_in_part_count_once(times: Times) -> None:
    """Each loop takes 300 rows; the watch ends in the midst of one."""
    write_library("rows.py", LIBRARY.replace(str(ROWS), "300").replace("time.sleep(0.1)", "pass"))
    found = times(
        "import mapper.rows\ndef loop():\n    for one in mapper.rows.objects(): pass\n"
        "for _ in range(60): loop()"
    )
    (one,) = (each for text, each in found.items() if text.startswith("SELECT a.id"))
    assert one.loop_rows > 200 * one.passes  # the rows of whole loops are rows of loops, too
    assert one.loop_ns >= (one.loop_rows - one.passes) * ROW_NS


def test_a_line_that_mostly_executes_nothing_is_no_loop(times: Times) -> None:
    """Most of its passes find the row in a cache."""
    write_library(
        "cache.py",
        "import mapper, time\nrows = {}\n\ndef get(number):\n    if number not in rows:\n"
        "        sql = 'SELECT a.id FROM item AS a, item AS b WHERE a.id = ?'\n"
        "        rows[number] = mapper.db.execute(sql, (number,)).fetchall()\n"
        "    began = time.perf_counter_ns()\n"
        f"    while time.perf_counter_ns() - began < {ROW_NS}: pass\n"
        "    return rows[number]\n",
    )
    found = times(
        "import mapper.cache\ntotal = 0\nfor n in range(4000):\n"
        "    total += len(mapper.cache.get(n // 900))"
    )
    (one,) = (each for text, each in found.items() if text.startswith("SELECT a.id"))
    assert (one.loop_rows, one.loop_ns) == (0, 0)


@pytest.mark.parametrize(("lines", "is_timed"), [(90, True), (3000, sys.version_info >= (3, 14))])
def test_a_loop_far_below_its_function_s_start_is_not_timed(
    times: Times, lines: int, is_timed: bool
) -> None:
    """Before 3.14, CPython searches for such a line at each event, which may take longer than a
    row.
    """
    write_library("rows.py", LIBRARY)
    before = "".join(f"x{number} = {number}\n" for number in range(lines))
    found = times(f"import mapper.rows\n{before}for one in mapper.rows.objects(): pass")
    (one,) = (each for text, each in found.items() if text.startswith("SELECT a.id"))
    assert one.passes == 1
    assert bool(one.loop_rows) == is_timed
