# category: blocked_loop
# fix: to_thread|aiosqlite
import asyncio

from sqlalchemy import create_engine, func, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Measure(Base):
    __tablename__ = "measure"
    id: Mapped[int] = mapped_column(primary_key=True)
    river: Mapped[int]
    level: Mapped[float]


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)


def floods(above: float) -> list[tuple[int, float]]:
    query = select(Measure.river, func.avg(Measure.level * Measure.level)).where(Measure.level > above)
    with Session(engine) as session:
        return session.execute(query.group_by(Measure.river % 50)).all()  # culprit


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    above = float(await reader.readline())
    writer.write(f"{len(floods(above))}\n".encode())  # culprit
    await writer.drain()
    writer.close()


async def ask(path: str, above: float) -> int:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{above}\n".encode())
    answer = int(await reader.readline())
    writer.close()
    return answer


async def main() -> None:
    async with await asyncio.start_unix_server(serve, "floods.sock"):
        print(await asyncio.gather(*(ask("floods.sock", n / 10) for n in range(5))))


with engine.begin() as connection:
    rows = [(i, i % 400, i * 7919 % 1009 / 11) for i in range(200_000)]
    connection.exec_driver_sql("INSERT INTO measure VALUES (?, ?, ?)", rows)
asyncio.run(main())
