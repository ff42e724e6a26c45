"""A baseline's file has a line for each statement and each test, and loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.errors import BaselineError
from queryprof.testing import baseline_lines
from queryprof.testing.baseline_file import Baseline, read_baseline, write_baseline

pytestmark = pytest.mark.once

counts = st.integers(0, 2**63 - 1)
plans = st.lists(st.lists(st.text(max_size=5), max_size=2), max_size=2)
figures = st.builds(
    lambda known, executions, rows, steps, scans, plans: {
        "executions": executions,
        "rows": rows,
        **({"vm_steps": steps, "full_scan_steps": scans} if known else {}),
        **({"plans": plans} if plans else {}),
    },
    st.booleans(),
    counts,
    counts,
    counts,
    counts,
    plans,
)
suites = st.dictionaries(
    st.text(max_size=9), st.dictionaries(st.text(max_size=9), figures, max_size=4), max_size=4
)


@given(suites)
@pytest.mark.slow
def test_nothing_is_lost(tests: dict[str, dict[str, dict[str, object]]]) -> None:
    statements, lines = json.loads(json.dumps(baseline_lines.lines_of(tests)))
    assert baseline_lines.tests_of(statements, lines) == tests


def suite(tests: int, statements: int) -> dict[str, dict[str, dict[str, object]]]:
    """Return a suite of this many tests that execute the same statements."""
    plan = [["SEARCH shop_book USING INDEX shop_book_author_id_8a31 (author_id=?)"]]
    one = {"executions": 2, "rows": 4, "vm_steps": 120, "full_scan_steps": 0, "plans": plan}
    text = 'SELECT "shop_book"."id", "shop_book"."name" FROM "shop_book" WHERE "author_id" = ?'
    return {
        f"shop/tests/test_books.py::Books::test_{number}": {
            f"{text} LIMIT {limit}": one for limit in range(statements)
        }
        for number in range(tests)
    }


@pytest.mark.slow
def test_each_statement_and_each_test_has_one_line(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    write_baseline(str(path), Baseline("3.50", "3.12", suite(694, 20)))
    text = path.read_text()
    assert len(text.splitlines()) == 694 + 20 + 9
    assert len(text) < 400_000
    assert read_baseline(str(path)) == Baseline("3.50", "3.12", suite(694, 20))


def test_a_changed_test_changes_one_line(tmp_path: Path) -> None:
    tests = suite(5, 3)
    write_baseline(str(tmp_path / "a.json"), Baseline("3.50", "3.12", tests))
    test = next(iter(tests))
    statement = next(iter(tests[test]))
    tests[test][statement] = {**tests[test][statement], "executions": 100}
    write_baseline(str(tmp_path / "b.json"), Baseline("3.50", "3.12", tests))
    before, after = ((tmp_path / name).read_text().splitlines() for name in ("a.json", "b.json"))
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    ((one, other),) = changed
    assert (" 2x 4r 120s" in one, " 100x 4r 120s" in other) == (True, True)


@pytest.mark.parametrize(
    ("statements", "tests"),
    [
        ({}, {"t": "abc 1x"}),
        ({"abc": ["SELECT 1"]}, {"t": "abc -1x"}),
        ({"abc": ["SELECT 1"]}, {"t": "abc 1y"}),
        ({"abc": ["SELECT 1"]}, {"t": "abc x"}),
        ({"abc": ["SELECT 1"]}, {"t": f"abc {'9' * 20}x"}),
        ({"abc": ["SELECT 1"]}, {"t": 5}),
        ({"abc": ["SELECT 1"]}, {"t": " ;"}),
        ({"abc": []}, {"t": ""}),
        ({"abc": [1]}, {"t": ""}),
        ({"abc": ["SELECT 1", "SCAN t"]}, {"t": ""}),
        ({"abc": ["SELECT 1", [1]]}, {"t": ""}),
        ([], {"t": ""}),
        ({}, []),
    ],
)
def test_what_is_no_baseline_is_refused(statements: object, tests: object, tmp_path: Path) -> None:
    document = {
        "format_version": 2,
        "sqlite_version": "3",
        "python_version": "3.12",
        "statements": statements,
    }
    path = tmp_path / "b.json"
    path.write_text(json.dumps({**document, "tests": tests}))
    with pytest.raises(BaselineError, match="not a queryprof baseline"):
        read_baseline(str(path))


def test_a_line_that_a_merge_left_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    write_baseline(str(path), Baseline("3.50", "3.12", suite(2, 1)))
    lines = path.read_text().splitlines()
    twice = next(at for at, line in enumerate(lines) if "test_0" in line)
    path.write_text("\n".join([*lines[:twice], lines[twice], *lines[twice:]]))
    with pytest.raises(BaselineError, match="write it again"):
        read_baseline(str(path))
