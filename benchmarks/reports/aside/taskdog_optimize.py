"""Kohei-Wada/taskdog#962. All handlers are `async def` and call SQLAlchemy/SQLite directly: while
one works, /health and the WebSocket pings freeze.

Cause: optimize() is a coroutine and runs the synchronous analytics() in it: each of the 5 calls
blocks the loop, and the pings wait.

Line: session.execute in analytics(), called by optimize().

Fix: await asyncio.to_thread(analytics) (or a `def` handler). The query itself needs what it reads.
"""

import asyncio
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column
from _main import main

engine = create_engine("sqlite:///taskdog.db")


class Base(DeclarativeBase):
    pass


class Task(Base):
    __tablename__ = "tasks"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    start: Mapped[int]
    hours: Mapped[int]


class Tag(Base):
    __tablename__ = "tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"), index=True)
    name: Mapped[str]


def setup():
    Base.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(
            Task.__table__.insert(),
            [
                {"id": i, "name": f"task {i}", "start": i * 7919 % 997, "hours": i % 9 + 1}
                for i in range(1100)
            ],
        )
        c.execute(
            Tag.__table__.insert(), [{"task_id": i, "name": f"tag{i % 20}"} for i in range(1100)]
        )


def analytics():
    other = aliased(Task)
    overlap = (
        (Task.start < other.start + other.hours)
        & (other.start < Task.start + Task.hours)
        & (Task.id < other.id)
    )
    with Session(engine) as session:
        return session.execute(
            select(func.count(), func.sum(Task.hours)).select_from(Task).join(other, overlap)
        ).one()[0]


async def optimize(thread):
    await asyncio.sleep(0.02)
    return await asyncio.to_thread(analytics) if thread else analytics()


async def websocket():
    for number in range(24):
        await asyncio.sleep(0.04)
    return number


async def serve(thread):
    pings = asyncio.create_task(websocket())
    found = [await optimize(thread) for _ in range(5)]
    return await pings, found[0]


main(setup, lambda: asyncio.run(serve(False)), lambda: asyncio.run(serve(True)))
