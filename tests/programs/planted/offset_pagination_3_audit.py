# category: offset_pagination
# fix: keyset|after it|WHERE \w+ > 
import asyncio

import aiosqlite


async def fill(db, count):
    await db.execute("CREATE TABLE audit (id INTEGER PRIMARY KEY, actor TEXT, at INTEGER, what TEXT)")
    await db.execute("CREATE INDEX audit_at ON audit (at)")
    rows = [(f"user{n % 90}", n * 7919 % 1_000_003, "changed a field") for n in range(count)]
    await db.executemany("INSERT INTO audit (actor, at, what) VALUES (?, ?, ?)", rows)
    await db.commit()


class AuditLog:
    page_size = 100

    def __init__(self, db):
        self.db = db

    async def page(self, number):
        sql = "SELECT id, actor, what FROM audit ORDER BY at DESC LIMIT ? OFFSET ?"
        skip = number * self.page_size
        async with self.db.execute(sql, (self.page_size, skip)) as cursor:  # culprit
            return await cursor.fetchall()

    async def __aiter__(self):
        number = 0
        while page := await self.page(number):
            for entry in page:
                yield entry
            number += 1


async def main():
    async with aiosqlite.connect(":memory:") as db:
        await fill(db, 30_000)
        actors = {}
        async for _id, actor, _what in AuditLog(db):
            actors[actor] = actors.get(actor, 0) + 1
        assert sum(actors.values()) == 30_000


asyncio.run(main())
