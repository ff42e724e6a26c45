"""The exponent and the table of programs with a known law."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

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
        "the steps of each execution grow in proportion to line",
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
            queryprof.check_growth(shop.populate_each, lambda: run(shop), 0, (400, 500, 600, 900))
    text = str(error.value)
    for line in ("the number for buyers", "rows in buyer", "number for sales", "rows in sale"):
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
        ({"max_growth": float("nan")}, "max_growth"),
        ({"max_growth": 10**400}, "max_growth"),
        ({"sizes": 20}, "sizes"),
        ({"sizes": (100, 101, 102, 103)}, "sizes"),
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


def chance_rows(shop: Shop, chance: random.Random) -> None:
    """Read about a third of the sales, others in each run."""
    low = chance.randrange(66)
    shop.rows("SELECT id FROM sale WHERE amount BETWEEN ? AND ?", low, low + 33)


def batches(shop: Shop) -> None:
    ids = [id_ for (id_,) in shop.rows("SELECT id FROM buyer")]
    for at in range(0, len(ids), 50):
        marks = ", ".join("?" * len(ids[at : at + 50]))
        shop.rows(f"SELECT name FROM buyer WHERE id IN ({marks})", *ids[at : at + 50])


def rewritten(shop: Shop) -> None:
    shop.rows("DELETE FROM log")
    shop.rows("INSERT INTO log SELECT name FROM buyer")


def other_names(shop: Shop) -> None:
    ((buyers,),) = shop.rows("SELECT max(id) FROM buyer")
    shop.rows(f"SELECT key AS key_of_{buyers} FROM setting")


def longer_texts(shop: Shop) -> None:
    """One statement for all buyers: its text changes with each size."""
    ids = [id_ for (id_,) in shop.rows("SELECT id FROM buyer")]
    shop.rows("SELECT id FROM buyer WHERE " + " OR ".join(f"id + 0 = {id_ + 0.5}" for id_ in ids))


@pytest.mark.parametrize("page", [10, 25, 100])
def test_a_page_that_is_larger_than_the_smallest_data_does_not_grow(page: int) -> None:
    shop = shop_in_memory("")
    with closing(shop.con):
        queryprof.check_growth(
            shop.populate, lambda: shop.rows(f"SELECT id FROM buyer LIMIT {page}"), 0
        )


@pytest.mark.parametrize("run", [batches, rewritten])
def test_work_in_proportion_is_no_square(run: Callable[[Shop], object]) -> None:
    shop = shop_in_memory("")
    with closing(shop.con):
        queryprof.check_growth(shop.populate, lambda: run(shop))


def test_random_rows_are_rarely_a_square() -> None:
    """Of 40 checks on random data, at most two fail."""
    failed = 0
    for seed in range(40):
        shop, chance = shop_in_memory(""), random.Random(seed)
        with closing(shop.con):
            try:
                queryprof.check_growth(shop.populate, lambda: chance_rows(shop, chance))  # noqa: B023
            except AssertionError:
                failed += 1
    assert failed <= 2


def test_a_text_that_changes_with_the_data_counts_in_the_sum() -> None:
    shop = shop_in_memory("")
    with closing(shop.con):
        queryprof.check_growth(shop.populate, lambda: other_names(shop), 0)
    shop = shop_in_memory("")
    with closing(shop.con), pytest.raises(AssertionError) as error:
        queryprof.check_growth(shop.populate, lambda: longer_texts(shop), 1)
    assert "All statements together" in str(error.value)


def test_rows_of_unrelated_connections_prove_nothing(tmp_path: Path) -> None:
    """The code opens a connection for each request, and another one is open."""

    def connected(work: Callable[[sqlite3.Connection], object]) -> None:
        with closing(sqlite3.connect(tmp_path / "app.db")) as con:
            work(con)
            con.commit()

    def populate(n: int) -> None:
        connected(lambda con: con.execute("CREATE TABLE IF NOT EXISTS t (a)"))
        connected(lambda con: con.executemany("INSERT INTO t VALUES (?)", [(1,)] * n))

    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("CREATE TABLE unrelated (a)")
        pairs = "SELECT count(*) FROM t x, t y WHERE x.a = y.a"
        with pytest.raises(AssertionError, match="square of n"):
            queryprof.check_growth(
                populate, lambda: connected(lambda con: con.execute(pairs).fetchall())
            )


def test_factories_of_rows_and_texts_are_left_alone() -> None:
    shop = shop_in_memory("")
    shop.con.text_factory, shop.con.row_factory = bytes, sqlite3.Row
    with closing(shop.con):
        queryprof.check_growth(shop.populate, lambda: shop.rows("SELECT name FROM buyer"))
        (row,) = shop.rows("SELECT name FROM buyer LIMIT 1")
        assert (tuple(row), type(row)) == ((b"name",), sqlite3.Row)


def test_an_exception_says_for_which_size() -> None:
    def run() -> None:
        if shop.rows("SELECT count(*) FROM buyer") == [(80,)]:
            raise ZeroDivisionError

    shop = shop_in_memory("")
    with closing(shop.con), pytest.raises(ZeroDivisionError) as error:
        queryprof.check_growth(shop.populate, run)
    assert error.value.__notes__ == ["queryprof: after populate(80,)"]


def test_what_runs_later_is_refused() -> None:
    async def populate(n: int) -> None: ...

    with pytest.raises(TypeError, match="populate: returned a coroutine"):
        queryprof.check_growth(populate, lambda: None)
    with pytest.raises(TypeError, match="run: returned a generator"):
        queryprof.check_growth(lambda n: None, lambda: (yield))
