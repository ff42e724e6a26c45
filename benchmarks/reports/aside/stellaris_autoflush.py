"""eliasdoehne/stellaris-dashboard#210 (pull request). The parser of a save game writes row by row:
"the whole pending session is flushed before every get-or-create query (~5900 flushes per
gamestate)".

Cause: autoflush: description() queries for each event of process(), and the query first flushes the
two or three objects that are pending (an INSERT and an UPDATE each, single).

Line: session.scalar in description() (loop in process()).

Fix: autoflush=False for the write session, a flush only where a description is new; the inserts
then go out together at the end.
"""

from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from _main import main

engine = create_engine("sqlite:///timeline.db")


class Base(DeclarativeBase):
    pass


class Country(Base):
    __tablename__ = "country"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Description(Base):
    __tablename__ = "shared_description"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(index=True, unique=True)


class Leader(Base):
    __tablename__ = "leader"
    id: Mapped[int] = mapped_column(primary_key=True)
    country_id: Mapped[int] = mapped_column(ForeignKey("country.id"))
    level: Mapped[int] = mapped_column(default=0)


class Event(Base):
    __tablename__ = "historical_event"
    id: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[int]
    leader_id: Mapped[int] = mapped_column(ForeignKey("leader.id"))
    description_id: Mapped[int] = mapped_column(ForeignKey("shared_description.id"))
    description = relationship(Description)


class Planet(Base):
    __tablename__ = "planet_status"
    id: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[int]
    stability: Mapped[int]


def setup():
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Country(id=i, name=f"empire {i}") for i in range(20)])
        session.add_all([Leader(id=i, country_id=i % 20, level=0) for i in range(250)])
        session.commit()


def description(session, text):
    found = session.scalar(select(Description).where(Description.text == text))
    if found is None:
        found = Description(text=text)
        session.add(found)
        session.flush()
    return found


def process(session, day):
    for leader in session.scalars(select(Leader).order_by(Leader.id)).all():
        leader.level += 1
        session.add(Planet(day=day, stability=leader.level * 7 % 100))
        session.add(
            Event(
                day=day,
                leader_id=leader.id,
                description=description(session, f"reached level {(leader.id + day) % 12}"),
            )
        )


def run(autoflush):
    with Session(engine, autoflush=autoflush) as session:
        for day in range(4):
            process(session, day)
            session.commit()
        return session.scalar(select(func.count()).select_from(Event)), session.scalar(
            select(func.count()).select_from(Description)
        )


main(setup, lambda: run(True), lambda: run(False))
