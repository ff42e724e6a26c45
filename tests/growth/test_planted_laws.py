"""The exponent and the table of programs with a known law."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw
import pytest
from growth.planted import PLANTED, Planted, Shop, shop_in_memory

import queryprof
from queryprof.growth.growths import ALL, VM_STEPS, Growth
from queryprof.testing.growth import SIZES, UnmeasuredError, measure_growths
from queryprof.testing.meter import meter

pytestmark = pytest.mark.once


@contextmanager
def meter_open() -> Iterator[None]:
    """Record from here on: the steps of APSW's connections are unknown if they were open before."""
    block = meter.open()
    yield
    meter.close(block)


def growths_of(planted: Planted, con: object) -> list[Growth]:
    shop = Shop(con, planted.more)
    found = measure_growths(shop.populate, ["n"], lambda: planted.run(shop), SIZES)
    return [one for one in found["n"] if one.figure == VM_STEPS]


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_law_is_found(name: str, driver: str) -> None:
    planted = PLANTED[name]
    connect = {"sqlite3": sqlite3.connect, "apsw": apsw.Connection}[driver]
    with meter_open(), closing(connect(":memory:")) as con:
        found = growths_of(planted, con)
    (total,) = [one for one in found if one.statement == ALL]
    assert total.law.exponent == pytest.approx(planted.exponent, abs=0.05)
    assert total.law.has_log == planted.has_log
    steepest = max(found, key=lambda one: (one.statement != ALL, one.law.exponent, one.values[-1]))
    if planted.tables:
        assert tuple(sorted(steepest.tables)) == planted.tables


def message_of(name: str, max_growth: float) -> str:
    shop = shop_in_memory(PLANTED[name].more)
    with pytest.raises(AssertionError) as error, closing(shop.con):
        queryprof.check_growth(shop.populate, lambda: PLANTED[name].run(shop), max_growth)
    return str(error.value)


def test_two_runs_give_the_same_message() -> None:
    assert message_of("pairs", 1) == message_of("pairs", 1)


def test_a_message_names_the_loop_and_the_forecast() -> None:
    text = message_of("lines of sales, no index", 1)
    assert text.startswith("grows too fast, max_growth=1: VM steps grow with the square of n\n")
    for line in (
        "SELECT thing_id FROM line WHERE sale_id = ?",
        "with n = 20, 40, 80, 160",
        "it runs once per row of SELECT id FROM sale",
        "each execution grows in proportion to line",
        "10 times the data: 100 times the work",
        "plan  SCAN line",
        "These tables grew together: sale, line.",
    ):
        assert line in text


def test_a_table_is_told_from_another_one_by_its_own_parameter() -> None:
    """With buyers or sales held constant, a scan of sales per buyer grows in proportion."""
    assert "square of n" in message_of("correlated", 1)
    shop = shop_in_memory("")
    run = PLANTED["correlated"].run
    with closing(shop.con):
        queryprof.check_growth(shop.populate_each, lambda: run(shop), 1)
        with pytest.raises(AssertionError) as error:
            queryprof.check_growth(shop.populate_each, lambda: run(shop), 0, (400, 500, 600, 800))
    text = str(error.value)
    for line in ("only buyers", "rows in buyer", "only sales", "rows in sale"):
        assert line in text


def test_steps_that_are_unknown_are_no_proof() -> None:
    with closing(apsw.Connection(":memory:")) as con:
        shop = Shop(con)
        with pytest.raises(UnmeasuredError, match="VM steps of SELECT id FROM sale"):
            queryprof.check_growth(shop.populate, lambda: PLANTED["sorted"].run(shop), 1)


def test_code_without_a_statement_is_no_proof() -> None:
    with pytest.raises(UnmeasuredError, match="executed no statement"):
        queryprof.check_growth(lambda n: None, lambda: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_growth": -1}, "max_growth"),
        ({"max_growth": "1"}, "max_growth"),
        ({"sizes": (1, 2, 3)}, "sizes"),
        ({"sizes": (40, 30, 20, 10)}, "sizes"),
        ({"sizes": (0, 1, 2, 3)}, "sizes"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        queryprof.check_growth(lambda n: None, lambda: None, **arguments)  # type: ignore[arg-type]


def test_a_function_without_a_number_and_a_coroutine_are_refused() -> None:
    async def work() -> None: ...

    with pytest.raises(TypeError, match="populate"):
        queryprof.check_growth(lambda: None, lambda: None)
    with pytest.raises(TypeError, match="coroutine"):
        queryprof.check_growth(lambda n: None, work)


def test_a_test_case_has_the_assertion() -> None:
    shop = shop_in_memory("")
    with closing(shop.con):
        case = queryprof.TestCase()
        case.assertGrowth(shop.populate, lambda: PLANTED["sorted"].run(shop))
        with pytest.raises(UnmeasuredError, match="added no rows for a larger n"):
            case.assertGrowth(shop.populate, lambda: PLANTED["sorted"].run(shop))
        with pytest.raises(AssertionError, match="grows too fast"):
            sizes = (170, 200, 400, 800)
            case.assertGrowth(shop.populate, lambda: PLANTED["pairs"].run(shop), 1, sizes)
