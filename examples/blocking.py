"""A small asynchronous program that queries its database on the event loop, and runs a clock
at the same time.
"""

import asyncio
import sqlite3

connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
connection.executemany(
    "INSERT INTO item (title) VALUES (?)", [(f"item {i % 997}",) for i in range(300_000)]
)


async def search(word: str) -> int:
    """Search without an index. The event loop is blocked until the result."""
    found = connection.execute("SELECT count(*) FROM item WHERE title LIKE ?", (f"%{word}%",))
    return int(found.fetchone()[0])


async def tick() -> None:
    for _ in range(100):
        await asyncio.sleep(0.01)


async def main() -> None:
    ticking = asyncio.create_task(tick())
    for number in range(10):
        await search(f"em {number}")
        await asyncio.sleep(0.01)
    await ticking


asyncio.run(main())
