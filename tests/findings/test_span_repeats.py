"""Queries that repeat in each span a few times, as on a page with ten rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import UNKNOWN_ITEMS, Finding
from queryprof.model import Distribution, Frame, Profile, Span

pytestmark = pytest.mark.once

MS = 1_000_000
VIEW = Frame("view", "/app/views.py", 10)
LOOP = replace(VIEW, line=9)
LIST, ITEM = "SELECT id FROM book LIMIT ?", "SELECT name FROM author WHERE id = ?"


def page(spans: int, items: int, rows: int, **changes: Any) -> Profile:
    """Return spans that each list books, and then run a query for each of some items."""
    listed = aggregate(LIST, (LOOP,), count=spans, ns=spans * MS, span="page")
    each = aggregate(ITEM, (VIEW,), count=spans * items, ns=spans * items * MS, span="page")
    durations = Distribution(spans, spans * 50 * MS, 50 * MS, {histogram_bucket(50 * MS): spans})
    queries = Distribution(spans, spans * (1 + items), 1 + items, {})
    span = Span("page", spans, 0, spans * MS, 0, 0, durations, queries, (), {})
    listed = listed._replace(rows=spans * rows)
    return replace(profile_of(listed, each), spans=(replace(span, **changes),))


def n_plus_one(profile: Profile, has_source: bool) -> list[Finding]:
    loop_at = lambda frame, _: LOOP if has_source and frame == VIEW else None  # noqa: E731
    return [one for one in find_all(Report(profile), loop_at, {}) if one.category == "n_plus_one"]


@pytest.mark.parametrize(("items", "is_found"), [(10, True), (5, True), (4, False)])
def test_once_per_row_of_a_query(items: int, is_found: bool) -> None:
    """Without the source, the numbers of rows and executions show the loop."""
    found = n_plus_one(page(30, items, rows=items), has_source=False)
    assert [one.parent for one in found] == [LIST] * is_found


@pytest.mark.parametrize(("items", "is_found"), [(10, True), (5, True), (4, False)])
def test_loop_in_the_source(items: int, is_found: bool) -> None:
    """The items of the loop are from elsewhere."""
    found = n_plus_one(page(30, items, rows=1), has_source=True)
    assert [one.doubt for one in found] == [UNKNOWN_ITEMS] * is_found


@pytest.mark.parametrize(("spans", "is_found"), [(4, True), (3, False)])
def test_few_executions_in_all(spans: int, is_found: bool) -> None:
    assert bool(n_plus_one(page(spans, 5, rows=5), has_source=True)) == is_found


def test_spans_without_the_query_count() -> None:
    """Of 100 spans, 10 run the query ten times: once per span on average."""
    assert not n_plus_one(page(10, 10, rows=1, count=100), has_source=True)
    assert n_plus_one(page(10, 10, rows=1, count=20), has_source=True)
