from __future__ import annotations

import asyncio

import pytest
import shop as program


@pytest.fixture
def shop():
    connection = program.open_shop()
    program.add_customers(connection, [f"customer{number}" for number in range(40)])
    for customer in range(1, 11):
        program.add_orders(connection, customer, [f"2026-01-{day:02}" for day in range(1, 9)])
    yield connection
    connection.close()


def test_customers_are_added(shop):
    program.add_customers(shop, ["ada", "bob", "cy"])
    assert program.customer_by_email(shop, "bob@example.org") == (42, "bob")


def test_orders_are_added(shop):
    program.add_orders(shop, 12, ["2026-02-01", "2026-02-02"])
    assert len(program.orders_of(shop, 12)) == 2


def test_invoice(shop):
    assert set(program.invoice(shop, 3).values()) == {4.5}


def test_latest_lines(shop):
    assert len(program.latest_lines(shop)) >= 5


def test_greeting(shop):
    assert asyncio.run(program.greet(shop, "customer7@example.org")) == "Hello, customer7"


def test_nobody(shop):
    assert asyncio.run(program.greet(shop, "nobody@example.org")) == "Who are you?"
