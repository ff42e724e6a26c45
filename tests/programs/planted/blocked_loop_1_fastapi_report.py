# category: blocked_loop
# fix: to_thread|aiosqlite|run_in_threadpool
import asyncio
import sqlite3

import httpx
from fastapi import FastAPI

app = FastAPI()
db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("CREATE TABLE ride (id INTEGER PRIMARY KEY, minutes INTEGER, meters INTEGER)")
db.executemany("INSERT INTO ride VALUES (?, ?, ?)", ((i, i % 97, i * 7919 % 9001) for i in range(300_000)))


def speeds(bucket: int) -> list[tuple[int, int]]:
    query = "SELECT meters / (minutes + 1) / ? AS speed, count(*) FROM ride GROUP BY 1"
    return db.execute(query, (bucket,)).fetchall()  # culprit


@app.get("/speeds/{bucket}")
async def histogram(bucket: int) -> dict[int, int]:
    return dict(speeds(bucket))  # culprit


@app.get("/health")
async def health() -> str:
    return "ok"


async def main() -> None:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://bikes") as client:
        calls = [client.get(f"/speeds/{bucket}") for bucket in (10, 20, 50)]
        calls += [client.get("/health") for _ in range(20)]
        answers = await asyncio.gather(*calls)
        assert all(answer.status_code == 200 for answer in answers)


asyncio.run(main())
