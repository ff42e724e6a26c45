"""The same kind of query, in a thread: the loop goes on."""
import asyncio
import sqlite3
import threading


class Census:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("CREATE TABLE house (id INTEGER PRIMARY KEY, street INTEGER, people INTEGER)")
        self.db.executemany("INSERT INTO house VALUES (?, ?, ?)", ((i, i * 7919 % 503, i % 9) for i in range(200_000)))

    def sizes(self, at_least: int) -> list[tuple[int, int]]:
        with self.lock:
            query = "SELECT street, sum(people) FROM house WHERE people >= ? GROUP BY street"
            return self.db.execute(query, (at_least,)).fetchall()

    async def streets(self, at_least: int) -> int:
        return len(await asyncio.to_thread(self.sizes, at_least))


async def heartbeat(beats: list[float]) -> None:
    while True:
        beats.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)


async def main(census: Census) -> None:
    beats: list[float] = []
    pulse = asyncio.create_task(heartbeat(beats))
    print(await asyncio.gather(*(census.streets(n) for n in range(4))))
    pulse.cancel()


asyncio.run(main(Census()))
