"""A query for each row of another one, in a connection's thread: one IN."""

import asyncio

import aiosqlite
from shared.timed import run

loop = asyncio.new_event_loop()


async def filled() -> aiosqlite.Connection:
    db = await aiosqlite.connect(":memory:")
    await db.executescript(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY);"
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER);"
        "CREATE INDEX orders_customer ON orders (customer)"
    )
    await db.executemany("INSERT INTO customer VALUES (?)", [(n,) for n in range(400)])
    await db.executemany(
        "INSERT INTO orders (customer) VALUES (?)", [(n % 400,) for n in range(4000)]
    )
    await db.commit()
    return db


async def orders_of(customer: int) -> int:
    query = "SELECT id FROM orders WHERE customer = ?"
    async with db.execute(query, (customer,)) as cursor:
        return len(list(await cursor.fetchall()))


async def one_by_one() -> int:
    customers = await (await db.execute("SELECT id FROM customer")).fetchall()
    return sum([await orders_of(customer) for (customer,) in customers])


async def at_once() -> int:
    query = "SELECT id FROM orders WHERE customer IN (SELECT id FROM customer)"
    return len(list(await (await db.execute(query)).fetchall()))


db = loop.run_until_complete(filled())
run(
    lambda: loop.run_until_complete(one_by_one()),
    lambda: loop.run_until_complete(at_once()),
)
loop.run_until_complete(db.close())
