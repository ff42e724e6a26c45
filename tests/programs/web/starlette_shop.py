"""A shop with Starlette over aiosqlite, which a test drives under uvicorn."""

import contextlib
import os
from collections.abc import AsyncIterator

import aiosqlite
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

import queryprof


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with aiosqlite.connect(os.environ["SHOP"]) as database:
        app.state.database = database
        yield


async def customer(request: Request) -> JSONResponse:
    database = request.app.state.database
    number = request.path_params["number"]
    async with database.execute("SELECT name FROM customer WHERE id = ?", (number,)) as cursor:
        row = await cursor.fetchone()
    return JSONResponse({"name": row and row[0]}, 200 if row else 404)


async def orders(request: Request) -> JSONResponse:
    found = []
    database = request.app.state.database
    async with database.execute("SELECT id, customer FROM purchase") as cursor:
        rows = await cursor.fetchall()
    for number, customer_number in rows:
        found.append([number, await name_of(database, customer_number)])
    return JSONResponse(found)


async def name_of(database: aiosqlite.Connection, number: int) -> str:
    cursor = await database.execute("SELECT name FROM customer WHERE id = ?", (number,))
    row = await cursor.fetchone()
    await cursor.close()
    assert row
    return str(row[0])


app = Starlette(
    routes=[
        Route("/customers/{number:int}", customer),
        Mount("/lists", routes=[Route("/orders", orders)]),
    ],
    lifespan=lifespan,
)
app.add_middleware(queryprof.AsgiMiddleware, server_timing=True)
