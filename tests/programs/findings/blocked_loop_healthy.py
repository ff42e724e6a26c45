import asyncio
import sqlite3

db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("CREATE TABLE n (a INTEGER PRIMARY KEY)")
db.executemany("INSERT INTO n VALUES (?)", [(i,) for i in range(800)])


def few() -> int:
    return len(db.execute("SELECT a FROM n WHERE a < 100").fetchall())


async def main() -> None:
    for _ in range(5):
        assert await asyncio.to_thread(few) == 100
        await asyncio.sleep(0.05)


asyncio.run(main())
