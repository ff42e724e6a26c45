import asyncio

import aiosqlite


async def main() -> None:
    async with aiosqlite.connect(":memory:") as db:
        await db.execute("CREATE TABLE reading (id INTEGER PRIMARY KEY, value REAL)")
        await db.executemany("INSERT INTO reading VALUES (?, ?)", [(n, n / 7) for n in range(5000)])
        cursor = await db.execute("SELECT value FROM reading")  # culprit
        total = 0.0
        while row := await cursor.fetchone():
            total += row[0]
        assert total > 1000


asyncio.run(main())
