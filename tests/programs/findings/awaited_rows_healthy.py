import asyncio

import aiosqlite


async def main() -> None:
    async with aiosqlite.connect(":memory:") as db:
        await db.execute("CREATE TABLE reading (id INTEGER PRIMARY KEY, value REAL)")
        await db.executemany("INSERT INTO reading VALUES (?, ?)", [(n, n / 7) for n in range(5000)])
        cursor = await db.execute("SELECT value FROM reading")
        total = 0.0
        async for row in cursor:
            total += row[0]
        await db.execute("INSERT INTO reading VALUES (?, ?)", (5000, total))
        async with db.execute("SELECT max(value) FROM reading") as one:
            assert await one.fetchone() == (total,)


asyncio.run(main())
