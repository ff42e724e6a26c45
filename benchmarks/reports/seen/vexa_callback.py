"""Vexa-ai/vexa#779 (twin of #508). A wave of bots that finish exhausts the pool, and reading
transcripts fails: connections are "idle in transaction". DSN: environment variable REPORTS_DSN
(key=value form).

Cause: on_exit() opens a transaction, reads the sessions, lists the files in S3 (0.08 s, the
network) and then updates: the pool's two connections are in use all that time, transcripts() waits
for one.

Line: the awaited list_objects() inside the transaction of on_exit().

Fix: list the files before the transaction (or between two short ones). asyncpg; no statement is
slow.
"""

import asyncio
import os
import asyncpg
from _main import main

dsn = dict(part.split("=") for part in os.environ["REPORTS_DSN"].split())
where = {
    "host": dsn["host"],
    "port": int(dsn["port"]),
    "user": dsn["user"],
    "database": dsn["dbname"],
}


async def make():
    db = await asyncpg.connect(**where)
    await db.execute("""DROP TABLE IF EXISTS vx_meetings, vx_sessions, vx_transcripts;
      CREATE TABLE vx_meetings (id int PRIMARY KEY, status text, files int);
      CREATE TABLE vx_sessions (id serial PRIMARY KEY, meeting_id int, session_uid text); CREATE INDEX ON vx_sessions (meeting_id);
      CREATE TABLE vx_transcripts (id serial PRIMARY KEY, meeting_id int, line text); CREATE INDEX ON vx_transcripts (meeting_id);
      INSERT INTO vx_meetings SELECT i, 'active', 0 FROM generate_series(1, 40) AS i;
      INSERT INTO vx_sessions (meeting_id, session_uid) SELECT i % 40 + 1, md5(i::text) FROM generate_series(1, 120) AS i;
      INSERT INTO vx_transcripts (meeting_id, line) SELECT i % 40 + 1, 'hello' FROM generate_series(1, 4000) AS i""")
    await db.close()


async def list_objects(session_uids):
    await asyncio.sleep(0.08)
    return len(session_uids)


async def sessions_of(db, meeting):
    return [
        row["session_uid"]
        for row in await db.fetch(
            "SELECT id, meeting_id, session_uid FROM vx_sessions WHERE meeting_id = $1", meeting
        )
    ]


async def on_exit(pool, meeting):
    async with pool.acquire() as db, db.transaction():
        files = await list_objects(await sessions_of(db, meeting))
        await db.execute(
            "UPDATE vx_meetings SET status = 'completed', files = $2 WHERE id = $1", meeting, files
        )


async def on_exit_short(pool, meeting):
    async with pool.acquire() as db:
        uids = await sessions_of(db, meeting)
    files = await list_objects(uids)
    async with pool.acquire() as db, db.transaction():
        await db.execute(
            "UPDATE vx_meetings SET status = 'completed', files = $2 WHERE id = $1", meeting, files
        )


async def transcripts(pool, meeting):
    async with pool.acquire() as db:
        return len(
            await db.fetch("SELECT id, line FROM vx_transcripts WHERE meeting_id = $1", meeting)
        )


async def wave(callback):
    async with asyncpg.create_pool(**where, min_size=2, max_size=2) as pool:
        work = [callback(pool, m) for m in range(1, 31)] + [
            transcripts(pool, m) for m in range(1, 11)
        ]
        lines = sum(n for n in await asyncio.gather(*work) if n)
        return lines, await pool.fetchval(
            "SELECT sum(files) FROM vx_meetings WHERE status = 'completed'"
        )


main(
    lambda: asyncio.run(make()),
    lambda: asyncio.run(wave(on_exit)),
    lambda: asyncio.run(wave(on_exit_short)),
)
