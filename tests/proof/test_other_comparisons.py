"""Rewrites of comparisons that keep an index from being used."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from queryprof.planner.judging import BEFORE, Judge
from queryprof.proof.parameters import Parameters, numbered
from queryprof.proof.rewriting import comparison_rewritings
from queryprof.proof.schema import read_schema
from queryprof.proof.workload import Sample

pytestmark = pytest.mark.once


def rewritten(books: Path, compared: str) -> list[str]:
    sample = Sample(f"SELECT title FROM book WHERE {compared}", (), is_drawn=False)
    with Judge() as judge:
        judge.copy_database(f"{books.as_uri()}?mode=ro", BEFORE)
        rows = functools.partial(judge.rows, BEFORE)
        return [one.sql for one in comparison_rewritings([sample], read_schema(judge), rows)]


@pytest.mark.parametrize(
    ("compared", "instead"),
    [
        ("+code = 'x'", "code = 'x'"),
        ("code || '' = 'x'", "code = 'x'"),
        ("id + 0 = 5", "id = 5"),
        ("id * 1 = 5", "id = 5"),
        ("'x' = code || ''", "code = 'x'"),
        (
            "substr(code, 1, 3) = 'abc'",
            "code >= 'abc' AND code < 'abc' || CHAR(1114111) AND SUBSTRING(",
        ),
        (
            "strftime('%Y-%m', created) = '2026-01'",
            "created >= '2026-01' AND created < '2026-01' || '~'",
        ),
        ("CAST(id AS TEXT) = '5'", "(id = '5' + 0 AND CAST(id AS TEXT) = '5')"),
        ("coalesce(code, 'none') = 'x'", "(code = 'x' OR (code IS NULL AND 'none' = 'x'))"),
    ],
)
@pytest.mark.repeats
def test_comparisons_that_keep_an_index_from_being_used(
    books: Path, compared: str, instead: str
) -> None:
    assert [sql for sql in rewritten(books, compared) if instead in sql]


@pytest.mark.parametrize(
    "compared",
    [
        "CAST(code AS INTEGER) = 5",
        "code + 0 = 5",
        "id || '' = '5'",
        "lower(id) = '5'",
        "strftime('%d', created) = '01'",
        "substr(code, 2, 3) = 'a'",
        "id + 1 = 5",
        "lower(code || title) = 'x'",
        "code = 'x' COLLATE NOCASE",
        "code > 'x'",
    ],
)
@pytest.mark.repeats
def test_comparisons_that_cannot_be_rewritten(books: Path, compared: str) -> None:
    assert rewritten(books, compared) == []


@pytest.mark.parametrize(
    ("sql", "values", "moved", "expected"),
    [
        ("a = ? AND b = ?", (1, 2), "{1} {0} {0}", ("? ? ?", (2, 1, 1))),
        ("a = ?2 AND b = ?1", (1, 2), "{0}", ("?", (1,))),
        ("a = :x AND b = :y", {"x": 1, "y": 2}, "{1} {0}", (":y :x", {"y": 2, "x": 1})),
        ("a = :x AND b = :x", {"x": 1}, "{0} {0}", (":x :x", {"x": 1})),
    ],
)
def test_parameters_are_moved(sql: str, values: object, moved: str, expected: object) -> None:
    parameters = Parameters()
    parameters.number_parameters(sql, values)  # type: ignore[arg-type]
    assert parameters.restore_placeholders(moved.format(numbered(0), numbered(1))) == expected
