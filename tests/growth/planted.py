"""Small programs on a shop's tables, each with a known law: how its VM steps grow with the shop."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

TABLES = """
CREATE TABLE setting (key INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE buyer (id INTEGER PRIMARY KEY, town INTEGER, name TEXT);
CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer_id INTEGER, amount INTEGER, day INTEGER);
CREATE TABLE line (id INTEGER PRIMARY KEY, sale_id INTEGER, thing_id INTEGER);
CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE log (message TEXT);
"""
ROWS_EACH = {"buyer": 1, "sale": 2, "line": 6, "thing": 1}
"""How many rows each table has for each buyer."""


class Shop:
    """A shop in a database, of which populate() makes more."""

    def __init__(self, con: Any, more: str = "") -> None:
        self.con = con
        for statement in filter(str.strip, (TABLES + more).split(";\n")):
            con.cursor().execute(statement)
        self._many("INSERT INTO setting VALUES (?, 'on')", [(key,) for key in range(10)])
        self._rows = dict.fromkeys(ROWS_EACH, 0)

    def populate(self, n: int) -> None:
        """Add rows until there are n buyers."""
        self.make(**{table: each * n for table, each in ROWS_EACH.items()})

    def populate_each(self, buyers: int, sales: int) -> None:
        """Add buyers and sales until there are so many."""
        self.make(buyer=buyers, sale=sales, line=60, thing=10)

    def make(self, **rows: int) -> None:
        chance = random.Random(5)
        buyers, things = rows["buyer"], rows["thing"]
        for table, number in rows.items():
            ids = range(self._rows[table] + 1, number + 1)
            self._many(
                {
                    "buyer": "INSERT INTO buyer VALUES (?, ? % 7, 'name')",
                    "sale": "INSERT INTO sale VALUES (?, ?, ?, ? % 365)",
                    "line": "INSERT INTO line VALUES (?, ?, ?)",
                    "thing": "INSERT INTO thing VALUES (?, 'thing')",
                }[table],
                [
                    {
                        "buyer": (id_, id_),
                        "sale": (id_, chance.randint(1, buyers), chance.randint(1, 99), id_),
                        "line": (id_, (id_ + 2) // 3, chance.randint(1, things)),
                        "thing": (id_,),
                    }[table]
                    for id_ in ids
                ],
            )
            self._rows[table] = max(number, self._rows[table])

    def _many(self, statement: str, values: list[tuple[int, ...]]) -> None:
        self.con.cursor().executemany(statement, values)

    def rows(self, statement: str, *values: object) -> list[Any]:
        return list(self.con.cursor().execute(statement, values))


class Planted(NamedTuple):
    """A program with its law.

    Attributes:
        exponent: of the VM steps of all its statements.
        tables: the tables of its steepest statement, if they can be told.
        more: SQL for more tables and indexes.
    """

    run: Callable[[Shop], object]
    exponent: float
    tables: tuple[str, ...] = ()
    more: str = ""
    has_log: bool = False


BY_SALE = "CREATE INDEX line_sale ON line (sale_id);\n"
BY_BUYER = "CREATE INDEX sale_buyer ON sale (buyer_id);\n"
COUNTING = """CREATE TRIGGER counted AFTER INSERT ON log BEGIN
    UPDATE setting SET value = (SELECT sum(amount) FROM sale) WHERE key = 1; END;\n"""
HALVES = """WITH RECURSIVE half (x) AS (
    SELECT {0} UNION ALL SELECT x / 2 FROM half WHERE x > 1) SELECT count(*) FROM half"""


def by_key(shop: Shop) -> None:
    for key in range(30):
        shop.rows("SELECT name FROM buyer WHERE id = ?", key % 10 + 1)


def settings(shop: Shop) -> None:
    for key in range(10):
        shop.rows("SELECT value FROM setting WHERE key = ?", key)


def newest(shop: Shop) -> None:
    shop.rows("SELECT id, amount FROM sale ORDER BY id DESC LIMIT 20")


def newest_with_lines(shop: Shop) -> None:
    for id_, _ in shop.rows("SELECT id, amount FROM sale ORDER BY id DESC LIMIT 20"):
        shop.rows("SELECT thing_id FROM line WHERE sale_id = ?", id_)


def of_one_town(shop: Shop) -> None:
    shop.rows("SELECT count(*) FROM sale WHERE buyer_id = 1")


def sorted_sales(shop: Shop) -> None:
    shop.rows("SELECT id FROM sale ORDER BY amount")


def lines_of_sales(shop: Shop) -> None:
    for (id_,) in shop.rows("SELECT id FROM sale"):
        shop.rows("SELECT thing_id FROM line WHERE sale_id = ?", id_)


def things_of_lines(shop: Shop) -> None:
    for (id_,) in shop.rows("SELECT id FROM sale"):
        for (thing,) in shop.rows("SELECT thing_id FROM line WHERE sale_id = ?", id_):
            shop.rows("SELECT name FROM thing WHERE id = ?", thing)


def joined(shop: Shop) -> None:
    shop.rows("SELECT s.id, count(*) FROM sale s JOIN line l ON l.sale_id = s.id GROUP BY s.id")


def correlated(shop: Shop) -> None:
    shop.rows("SELECT (SELECT count(*) FROM sale WHERE buyer_id = b.id) FROM buyer b")


def all_pages(shop: Shop) -> None:
    at = 0
    while shop.rows("SELECT id FROM sale ORDER BY id LIMIT 10 OFFSET ?", at):
        at += 10


def counted_insert(shop: Shop) -> None:
    shop.rows("INSERT INTO log VALUES ('seen')")


def insert_for_each(shop: Shop) -> None:
    for _ in shop.rows("SELECT id FROM buyer"):
        shop.rows("INSERT INTO log VALUES ('seen')")


def halved(shop: Shop) -> None:
    ((last,),) = shop.rows("SELECT max(id) FROM sale")
    shop.rows(HALVES.format("CAST(? AS INTEGER)"), 1 << last.bit_length())


def halved_for_each(shop: Shop) -> None:
    ((last,),) = shop.rows("SELECT max(id) FROM buyer")
    for _ in shop.rows("SELECT id FROM buyer"):
        shop.rows(HALVES.format("CAST(? AS INTEGER)"), last)


def pairs(shop: Shop) -> None:
    shop.rows("SELECT count(*) FROM sale a, sale b WHERE a.amount < b.amount")


def triples(shop: Shop) -> None:
    shop.rows("SELECT count(*) FROM buyer a, buyer b, buyer c WHERE a.town + b.town < c.town")


def running(shop: Shop) -> None:
    for (id_,) in shop.rows("SELECT id FROM buyer"):
        shop.rows("SELECT count(*) FROM buyer WHERE id <= ?", id_)


def many_at_once(shop: Shop) -> None:
    ids = [id_ for (id_,) in shop.rows("SELECT id FROM buyer")]
    marks = ", ".join("?" * len(ids))
    shop.rows(f"SELECT name FROM buyer WHERE id IN ({marks})", *ids)


def half_of_the_buyers(shop: Shop) -> None:
    """The loop runs for every second row, so no statement's rows explain it."""
    for (id_,) in shop.rows("SELECT id FROM buyer")[::2]:
        shop.rows("SELECT count(*) FROM sale WHERE buyer_id = ?", id_)


PLANTED = {
    "by key": Planted(by_key, 0),
    "settings": Planted(settings, 0),
    "newest": Planted(newest, 0),
    "newest with lines": Planted(newest_with_lines, 0, more=BY_SALE),
    "counted insert": Planted(counted_insert, 1, (), COUNTING),
    "a logarithm": Planted(halved, 0, (), has_log=True),
    "one buyer's sales": Planted(of_one_town, 1, ("sale",)),
    "sorted": Planted(sorted_sales, 1, ("sale",)),
    "newest with lines, no index": Planted(newest_with_lines, 1, ("line",)),
    "lines of sales": Planted(lines_of_sales, 1, ("sale",), BY_SALE),
    "things of lines": Planted(things_of_lines, 1, ("line",), BY_SALE),
    "many at once": Planted(many_at_once, 1, ("buyer",)),
    "joined": Planted(joined, 1, ("line", "sale")),
    "n log n": Planted(halved_for_each, 1, ("buyer",), has_log=True),
    "correlated": Planted(correlated, 2, ("buyer", "sale")),
    "lines of sales, no index": Planted(lines_of_sales, 2, ("line", "sale")),
    "all pages": Planted(all_pages, 2, ("sale",)),
    "insert for each": Planted(insert_for_each, 2, (), COUNTING),
    "pairs": Planted(pairs, 2, ("sale",)),
    "running": Planted(running, 2, ("buyer",)),
    "half of the buyers": Planted(half_of_the_buyers, 2, ()),
    "triples": Planted(triples, 3, ("buyer",)),
}


def shop_in_memory(more: str) -> Shop:
    return Shop(sqlite3.connect(":memory:"), more)
