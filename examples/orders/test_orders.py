"""Tests that limit the shop's queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from orders import best_customers, make_shop, revenue_of


@pytest.fixture
def shop() -> Iterator[sqlite3.Connection]:
    connection = make_shop()
    yield connection
    connection.close()


@pytest.mark.queryprof(max_queries=1, no_full_scans=True)
def test_revenue(shop: sqlite3.Connection) -> None:
    assert revenue_of(shop, 7) > 0


def test_best_customers(shop: sqlite3.Connection) -> None:
    assert len(best_customers(shop, 3)) == 3


def test_one_query_for_any_number(shop: sqlite3.Connection, queryprof) -> None:
    with queryprof.at_most(1):
        best_customers(shop, 20)
