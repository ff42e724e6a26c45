"""A query for each object of another one, awaited: one IN."""

import asyncio
from operator import attrgetter

import sqlalchemy as sa
from shared.timed import run
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)


class Line(Base):
    __tablename__ = "lines"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("orders.id"), index=True)


loop = asyncio.new_event_loop()
engine = create_async_engine("sqlite+aiosqlite://")


async def fill() -> None:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        await connection.execute(sa.insert(Order), [{"id": n + 1} for n in range(400)])
        await connection.execute(sa.insert(Line), [{"order_id": n % 400 + 1} for n in range(800)])


async def before() -> int:
    found = 0
    async with AsyncSession(engine) as session:
        for order in (await session.scalars(sa.select(Order))).all():
            lines = sa.select(Line).where(Line.order_id == order.id)
            found += len((await session.scalars(lines)).all())
    return found


async def after() -> int:
    async with AsyncSession(engine) as session:
        orders = (await session.scalars(sa.select(Order))).all()
        numbers = list(map(attrgetter("id"), orders))
        lines = sa.select(Line).where(Line.order_id.in_(numbers))
        return len((await session.scalars(lines)).all())


loop.run_until_complete(fill())
run(lambda: loop.run_until_complete(before()), lambda: loop.run_until_complete(after()))
loop.run_until_complete(engine.dispose())
