"""The values of a statement show its OFFSET, and patterns that begin with a wildcard."""

from __future__ import annotations

import sqlite3
import sys

import pytest

import queryprof
from queryprof.model import ParameterSample

pytestmark = pytest.mark.once


def sampled(sql: str, *given: object) -> ParameterSample:
    """Return the samples of one statement, executed with each of some values."""
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
        ("SELECT * FROM item LIMIT ? OFFSET ?", (10, 32), 32),
        ("SELECT * FROM item LIMIT ? OFFSET ?", [10, 0], 0),
        ("SELECT * FROM item LIMIT ? OFFSET ?", (10, -5), 0),
        ("SELECT * FROM item LIMIT ? offset ? ;\n", (10, 32), 32),
        ("SELECT * FROM item LIMIT 10 OFFSET 64", (), 64),
        ("SELECT * FROM item LIMIT :most OFFSET :first", {"first": 16, "most": 5}, 16),
        ("SELECT * FROM item LIMIT -1 OFFSET @first", {"first": 0}, 0),
        ("SELECT * FROM item LIMIT ?, ?", (16, 10), 16),
        ("SELECT * FROM item LIMIT 16, 10", (), 16),
        ("SELECT * FROM item LIMIT 5 OFFSET 1 -- the rest OFFSET 9", (), 1),
        ("SELECT * FROM item WHERE name <> '?' /* ? */ LIMIT ? OFFSET ?", (10, 32), 32),
        ("SELECT * FROM item WHERE (id > ? OR name = 'ä') LIMIT 5 OFFSET ?", (10, 32), 32),
    ],
)
def test_an_offset_is_known(sql: str, values: object, offset: int) -> None:
    found = sampled(sql, values)
    assert (found.offsets, found.skipped) == (1, offset)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1, 1),
        (2, 2),
        (3, 4),
        (5, 4),
        (6, 8),
        (7361928450177, 2**32),
        (2**63 - 1, 2**32),
        (2**31 + 2**30, 2**32),
        (2**31 + 2**30 - 1, 2**31),
    ],
)
def test_a_power_of_two_is_kept_of_it(value: int, kept: int) -> None:
    """The power is next to the value, so a trace reveals no value."""
    found = sampled("SELECT * FROM item LIMIT 5 OFFSET ?", (value,))
    assert (found.offsets, found.skipped) == (1, kept)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT * FROM item LIMIT ?", (10,)),
        ("SELECT * FROM (SELECT * FROM item LIMIT 5 OFFSET ?)", (3,)),
        ("SELECT 7 AS offset", ()),
        ("SELECT * FROM item LIMIT 5 OFFSET ? + 1", (3,)),
        ("SELECT * FROM item LIMIT 5 OFFSET ?", ("4",)),
        ("SELECT * FROM item LIMIT 5 OFFSET (?)", (4,)),
        ("SELECT id, ? FROM item LIMIT max(5, ?)", (4, 5)),
        ("SELECT * FROM item WHERE name = 'OFFSET' LIMIT 5", ()),
    ],
)
def test_another_end_is_no_offset(sql: str, values: object) -> None:
    assert sampled(sql, values).offsets == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_order_of_names_in_a_sequence_is_not_known() -> None:
    """sqlite3 binds them in the order in which they first appear, whatever their names are."""
    if sys.version_info < (3, 14):  # newer versions refuse a sequence for names
        found = sampled("SELECT * FROM item LIMIT $2 OFFSET $1", (10, 5000))
        assert found.offsets == 0
    found = sampled("SELECT * FROM item LIMIT ?2 OFFSET ?1", (16, 5))
    assert (found.offsets, found.skipped) == (1, 16)


def test_offsets_add_up() -> None:
    """All three executions are sampled, so their offsets add up."""
    found = sampled("SELECT * FROM item LIMIT ? OFFSET ?", *((10, n) for n in (8, 16, 32)))
    assert (found.offsets, found.skipped) == (3, 56)


def test_slow_executions_count_no_more_than_others() -> None:
    """Each execution takes longer than the one before, so most of them are sampled. The random
    samples alone would be about an eighth.
    """
    offsets = [256 * 2**n for n in range(9)] * 8
    found = sampled(
        "SELECT x FROM (WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT"
        " 100000) SELECT x FROM r) LIMIT 1 OFFSET ?",
        *((n,) for n in sorted(offsets)),
    )
    assert found.offsets <= len(offsets) / 2


def test_an_execution_that_failed_shows_nothing() -> None:
    with queryprof.profile() as recording:
        db = sqlite3.connect(":memory:")
        for sql in ("SELECT zq9secret zq9other OFFSET 64", "SELECT 'not closed OFFSET 64"):
            with pytest.raises(sqlite3.OperationalError):
                db.execute(sql)
        db.close()
    assert sum(one.offsets for one in recording.profile.parameters) == 0


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
        ("SELECT * FROM item WHERE name <> ? AND name LIKE ?", ("_hidden", "n11%"), False),
        ("SELECT * FROM item WHERE name LIKE ? AND name <> ?", ("n11%", "%"), False),
        ("SELECT * FROM item WHERE name LIKE ?", ("*text",), False),
        ("SELECT * FROM item WHERE name GLOB ?", ("%text",), False),
        ("SELECT * FROM item WHERE name GLOB ?", ("[a]text",), True),
        ("SELECT * FROM item WHERE name LIKE lower(?)", ("%text",), True),
        ("SELECT * FROM item WHERE name LIKE name AND name = ?", ("%text",), False),
        ("SELECT * FROM item WHERE name LIKE name OR name = ?", ("%text",), False),
        ("SELECT * FROM item WHERE name NOT LIKE 'ä%' AND name LIKE ?", ("_x",), True),
        ("SELECT 'LIKE', ? FROM item WHERE name LIKE ?", ("%", "a%"), False),
    ],
)
def test_patterns_that_begin_with_a_wildcard(sql: str, values: object, is_open: bool) -> None:
    found = sampled(sql, values)
    assert (found.samples, found.open_patterns) == (1, is_open)
