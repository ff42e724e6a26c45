"""aiosqlite in FastAPI, with short queries."""
import asyncio
import os
from contextlib import asynccontextmanager

import aiosqlite
import httpx
from fastapi import FastAPI


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with aiosqlite.connect("shop.db") as app.state.db:
        await app.state.db.execute("CREATE TABLE article (id INTEGER PRIMARY KEY, shelf INTEGER, name TEXT)")
        rows = [(i, i % 40, f"article {i}") for i in range(8000)]
        await app.state.db.executemany("INSERT INTO article VALUES (?, ?, ?)", rows)
        await app.state.db.execute("CREATE INDEX shelf ON article (shelf)")
        await app.state.db.commit()
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/shelf/{number}")
async def shelf(number: int) -> list[str]:
    async with app.state.db.execute("SELECT name FROM article WHERE shelf = ?", (number,)) as cursor:
        return [name async for (name,) in cursor]


async def main() -> None:
    async with lifespan(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            answers = await asyncio.gather(*(client.get(f"/shelf/{n % 40}") for n in range(120)))
            assert all(len(answer.json()) == 200 for answer in answers)


if os.path.exists("shop.db"):
    os.remove("shop.db")
asyncio.run(main())
os.remove("shop.db")
