"""jentic/jentic-one#529 and #537 (pull requests; issue #534; the same in
lrnselfreliance/wrolpi#566). "database is locked" although WAL and a busy timeout of 5 s are set.

Cause: claim() begins deferred, reads the next job and then writes: when another worker has
committed in between, the upgrade fails at once (no timeout applies), and the worker sleeps and
tries again.

Line: the UPDATE in claim() (its transaction begins with the SELECT after BEGIN).

Fix: BEGIN IMMEDIATE. aiosqlite, three workers.
"""

import asyncio
import sqlite3
import aiosqlite
from _main import main

WORKERS = 3
JOBS = 60


def setup():
    db = sqlite3.connect("admin.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript("""CREATE TABLE jobs (id INTEGER PRIMARY KEY, kind TEXT, status TEXT, attempts INTEGER, worker TEXT); CREATE INDEX jobs_status ON jobs (status, kind);
      CREATE TABLE access_tokens (id INTEGER PRIMARY KEY, token TEXT UNIQUE, expires INTEGER); CREATE TABLE audit (id INTEGER PRIMARY KEY, job INTEGER, what TEXT);""")
    with db:
        db.executemany(
            "INSERT INTO jobs VALUES (?,?,?,?,?)",
            ((i, f"kind {i % WORKERS}", "queued", 0, None) for i in range(JOBS)),
        )
        db.executemany(
            "INSERT INTO access_tokens VALUES (?,?,?)", ((i, f"token{i}", i) for i in range(500))
        )


async def claim(db, worker, begin):
    await db.execute(begin)
    async with db.execute(
        "SELECT id FROM jobs WHERE status = 'queued' AND kind = ? ORDER BY id LIMIT 1", (worker,)
    ) as cursor:
        row = await cursor.fetchone()
    if row is not None:
        async with db.execute("SELECT count(*) FROM access_tokens WHERE expires > 400") as cursor:
            assert await cursor.fetchone()
        await db.execute(
            "UPDATE jobs SET status = 'done', attempts = attempts + 1, worker = ? WHERE id = ?",
            (worker, row[0]),
        )
        await db.execute("INSERT INTO audit (job, what) VALUES (?, 'claimed')", (row[0],))
    await db.commit()
    return row


async def work(worker, begin):
    done, tries = 0, 0
    async with aiosqlite.connect("admin.db", isolation_level=None, timeout=5) as db:
        await db.execute("PRAGMA synchronous = NORMAL")
        while True:
            try:
                if await claim(db, worker, begin) is None:
                    return done
                done, tries = done + 1, 0
                await asyncio.sleep(0.01)
            except sqlite3.OperationalError:
                await db.rollback()
                tries += 1
                await asyncio.sleep(0.15 * min(tries, 4))


async def serve(begin):
    return sum(await asyncio.gather(*(work(f"kind {n}", begin) for n in range(WORKERS))))


main(setup, lambda: asyncio.run(serve("BEGIN")), lambda: asyncio.run(serve("BEGIN IMMEDIATE")))
