"""session.get() of objects that the session has already: no queries."""
import random

from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class City(Base):
    __tablename__ = "city"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    neighbour: Mapped[int]


def walk(session: Session, start: int, steps: int) -> str:
    city = session.get(City, start)
    for _ in range(steps):
        city = session.get(City, city.neighbour)
    return city.name


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
draw = random.Random(4)
with Session(engine) as session:
    session.execute(insert(City), [{"id": i, "name": f"c{i}", "neighbour": draw.randrange(5000)} for i in range(5000)])
    cities = session.scalars(select(City)).all()
    print(len(cities), [walk(session, n, 2000) for n in range(30)])
