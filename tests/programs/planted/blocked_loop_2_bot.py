# category: blocked_loop
# fix: to_thread|aiosqlite
import asyncio
import sqlite3


class Bot:
    def __init__(self) -> None:
        self.store = sqlite3.connect(":memory:")
        self.store.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, author INTEGER, text TEXT)")
        rows = ((i, i % 211, f"message {i * 7919 % 65_537}") for i in range(150_000))
        self.store.executemany("INSERT INTO message VALUES (?, ?, ?)", rows)
        self.pings = 0

    async def on_stats(self, length: int) -> str:
        best = self.store.execute(  # culprit
            "SELECT author, count(DISTINCT substr(text, -?)) AS n FROM message GROUP BY author ORDER BY n DESC LIMIT 1",  # culprit
            (length,),
        ).fetchone()  # culprit
        return f"most varied is {best[0]}"

    async def on_ping(self) -> str:
        self.pings += 1
        return "pong"


async def user(bot: Bot, number: int) -> None:
    for turn in range(3):
        await asyncio.sleep(0.001)
        if number == 0:
            await bot.on_stats(2 + turn)
        else:
            await bot.on_ping()


async def main(bot: Bot) -> None:
    await asyncio.gather(*(user(bot, number) for number in range(12)))
    assert bot.pings == 33


asyncio.run(main(Bot()))
