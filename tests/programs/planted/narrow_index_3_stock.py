# category: narrow_index
# fix: \((shop, sku|sku, shop)\)|\(sku\)|index on all that it compares: (shop, sku|sku, shop)
import sqlite3
from contextlib import contextmanager

DDL = """
CREATE TABLE stock (id INTEGER PRIMARY KEY, shop TEXT, sku TEXT, pieces INTEGER DEFAULT 100);
CREATE INDEX stock_of_shop ON stock (shop);
"""


@contextmanager
def warehouse():
    db = sqlite3.connect(":memory:")
    db.executescript(DDL)
    db.executemany(
        "INSERT INTO stock (shop, sku) VALUES (?, ?)",
        ((shop, f"A-{n:05d}") for n in range(10_000) for shop in ("bern", "graz", "linz")),
    )
    yield db
    db.close()


def book_out(db, line):
    shop, sku, pieces = line
    sql = "UPDATE stock SET pieces = pieces - :n WHERE shop = :shop AND sku = :sku"
    return db.execute(sql, {"n": pieces, "shop": shop, "sku": sku}).rowcount  # culprit


def picking_list():
    for n in range(360):
        yield ("bern", "graz", "linz")[n % 3], f"A-{n * 4111 % 10_000:05d}", 1 + n % 4


with warehouse() as db:
    booked = sum(map(lambda line: book_out(db, line), picking_list()))
    assert booked == 360
