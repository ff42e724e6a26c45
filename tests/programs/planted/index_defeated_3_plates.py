# category: index_defeated
# fix: column itself|as (it is|they are) stored|on the expression|replace\(
import asyncio
import os

from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Permit(Base):
    __tablename__ = "permit"
    id: Mapped[int] = mapped_column(primary_key=True)
    plate: Mapped[str] = mapped_column(index=True)
    zone: Mapped[int]


def zone_of(engine, plate):
    with Session(engine) as session:
        squeezed = func.replace(func.upper(Permit.plate), "-", "")
        return session.scalar(select(Permit.zone).where(squeezed == plate.upper()))  # culprit


async def camera(engine, plates):
    return [await asyncio.to_thread(zone_of, engine, plate) for plate in plates]


if os.path.exists("permit.db"):
    os.remove("permit.db")
engine = create_engine("sqlite:///permit.db")
Base.metadata.create_all(engine)
with engine.begin() as connection:
    connection.connection.cursor().executemany(
        "INSERT INTO permit (plate, zone) VALUES (?, ?)",
        ((f"GE-{n * 31 % 20_011:05d}", n % 9) for n in range(20_000)),
    )
seen = asyncio.run(camera(engine, [f"ge{n * 31 % 20_011:05d}" for n in range(0, 20_000, 160)]))
assert None not in seen
