import asyncio
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE n (a INTEGER)")
db.executemany("INSERT INTO n VALUES (?)", [(i,) for i in range(800)])


def pairs() -> int:
    query = (
        "SELECT count(*) FROM n AS x, n AS y, n AS z WHERE x.a + y.a + z.a % 3 = 700 AND z.a < 12"
    )
    return int(db.execute(query).fetchone()[0])  # culprit


async def handler() -> int:
    await asyncio.sleep(0.01)
    return pairs()


async def main() -> None:
    ticks = asyncio.create_task(asyncio.sleep(0.3))
    await asyncio.gather(*(handler() for _ in range(3)))
    await ticks


asyncio.run(main())
