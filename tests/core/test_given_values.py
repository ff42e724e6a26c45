"""What the values given to a statement have shown: an OFFSET, and patterns that begin with a wildcard."""

from __future__ import annotations

import sqlite3

import pytest

import queryprof
from queryprof.model import ParameterSample

pytestmark = pytest.mark.once


def sampled(sql: str, *given: object) -> ParameterSample:
    """Of one statement, executed with each of some values."""
    with queryprof.profile() as recording:
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
        for values in given:
            db.execute(sql, values).fetchall()
        db.close()
    (found,) = [one for one in recording.profile.parameters if one.statement.startswith("SELECT")]
    return found


@pytest.mark.parametrize(
    ("sql", "values", "offset"),
    [
        ("SELECT * FROM item LIMIT ? OFFSET ?", (10, 40), 40),
        ("SELECT * FROM item LIMIT ? OFFSET ?", [10, 0], 0),
        ("SELECT * FROM item LIMIT ? offset ? ;\n", (10, 40), 40),
        ("SELECT * FROM item LIMIT 10 OFFSET 70", (), 70),
        ("SELECT * FROM item LIMIT :most OFFSET :first", {"first": 20, "most": 5}, 20),
        ("SELECT * FROM item LIMIT -1 OFFSET @first", {"first": 0}, 0),
    ],
)
def test_an_offset_is_known(sql: str, values: object, offset: int) -> None:
    found = sampled(sql, values)
    assert (found.offsets, found.skipped) == (1, offset)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT * FROM item LIMIT ?", (10,)),
        ("SELECT * FROM (SELECT * FROM item LIMIT 5 OFFSET ?)", (3,)),
        ("SELECT 7 AS offset", ()),
        ("SELECT * FROM item LIMIT 5 OFFSET ? + 1", (3,)),
        ("SELECT * FROM item LIMIT 5 OFFSET 1 -- the rest", ()),
        ("SELECT * FROM item LIMIT 5 OFFSET ?", ("4",)),
    ],
)
def test_another_end_is_no_offset(sql: str, values: object) -> None:
    assert sampled(sql, values).offsets == 0


def test_offsets_add_up() -> None:
    """The first executions, and the slowest of all, are sampled."""
    found = sampled("SELECT * FROM item LIMIT ? OFFSET ?", *((10, n) for n in (10, 20, 30)))
    assert (found.offsets, found.skipped) == (3, 60)


@pytest.mark.parametrize(
    ("sql", "values", "is_open"),
    [
        ("SELECT * FROM item WHERE name LIKE ?", ("%text%",), True),
        ("SELECT * FROM item WHERE name LIKE ?", ("text%",), False),
        ("SELECT * FROM item WHERE name GLOB ?", ("*text",), True),
        ("SELECT * FROM item WHERE name GLOB :name", {"name": "?ext"}, True),
        ("SELECT * FROM item WHERE name LIKE '%' || ?", ("text",), True),
        ("SELECT * FROM item WHERE name LIKE 'a%'", (), False),
        ("SELECT * FROM item WHERE name LIKE ?", ("",), False),
        ("SELECT strftime('%Y', name) FROM item WHERE name LIKE 'a%'", (), False),
        ("SELECT * FROM item WHERE name GLOB '*a'", (), True),
        ("SELECT * FROM item WHERE id = ?", (7,), False),
    ],
)
def test_patterns_that_begin_with_a_wildcard(sql: str, values: object, is_open: bool) -> None:
    found = sampled(sql, values)
    assert (found.samples, found.open_patterns) == (1, is_open)
