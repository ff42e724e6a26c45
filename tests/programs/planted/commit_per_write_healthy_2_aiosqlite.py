"""A queue's consumer stores what has come in so far in one transaction."""
import asyncio
import os

import aiosqlite


async def produce(queue: asyncio.Queue) -> None:
    for number in range(20_000):
        await queue.put((number, f"event {number}"))
        if number % 4000 == 0:
            await asyncio.sleep(0.03)
    await queue.put(None)


async def consume(queue: asyncio.Queue, db: aiosqlite.Connection) -> None:
    done = False
    while not done:
        batch = [await queue.get()]
        while not queue.empty():
            batch.append(queue.get_nowait())
        done = batch[-1] is None
        await db.executemany("INSERT INTO event VALUES (?, ?)", [e for e in batch if e])
        await db.commit()


async def main() -> None:
    async with aiosqlite.connect("events.db") as db:
        await db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, text TEXT)")
        queue: asyncio.Queue = asyncio.Queue(5000)
        await asyncio.gather(produce(queue), consume(queue, db))


if os.path.exists("events.db"):
    os.remove("events.db")
asyncio.run(main())
os.remove("events.db")
