"""home-assistant/core#44736. Removing old data of the recorder takes ages on PostgreSQL (3.5
million states). DSN: environment variable REPORTS_DSN (key=value form).

Cause: states.old_state_id refers to states and has no index: for each row that DELETE removes, the
server's foreign key check reads the whole table.

Line: session.execute(delete(...)) in purge().

Fix: CREATE INDEX ON states (old_state_id). The DELETE's own plan is fine (an index on
last_updated).
"""

import os
import psycopg2
from sqlalchemy import ForeignKey, create_engine, delete, func, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from _main import main

engine = create_engine(
    "postgresql+psycopg2://", creator=lambda: psycopg2.connect(os.environ["REPORTS_DSN"])
)


class Base(DeclarativeBase):
    pass


class Event(Base):
    __tablename__ = "ha_events"
    event_id: Mapped[int] = mapped_column(primary_key=True)
    event_type: Mapped[str]
    time_fired: Mapped[int] = mapped_column(index=True)


class State(Base):
    __tablename__ = "ha_states"
    state_id: Mapped[int] = mapped_column(primary_key=True)
    entity_id: Mapped[str] = mapped_column(index=True)
    state: Mapped[str]
    last_updated: Mapped[int] = mapped_column(index=True)
    old_state_id: Mapped[int | None] = mapped_column(ForeignKey("ha_states.state_id"))


def setup():
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(
            text(
                "INSERT INTO ha_events SELECT i, 'state_changed', i FROM generate_series(1, 20000) AS i"
            )
        )
        c.execute(
            text(
                "INSERT INTO ha_states SELECT i, 'sensor.' || i % 50, 'on', i, CASE WHEN i > 50 AND i % 1000 > 50 THEN i - 50 END FROM generate_series(1, 30000) AS i"
            )
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        c.execute(text("ANALYZE"))


def purge(session, before):
    session.execute(
        text("UPDATE ha_states SET old_state_id = NULL WHERE last_updated BETWEEN :b AND :b + 50"),
        {"b": before},
    )
    session.execute(delete(Event).where(Event.time_fired < before))
    session.execute(delete(State).where(State.last_updated < before))
    session.commit()


def bad():
    with Session(engine) as session:
        for before in range(100, 801, 100):
            purge(session, before)
        return session.scalar(select(func.count()).select_from(State)), session.scalar(
            select(func.count()).select_from(Event)
        )


def fixed():
    with engine.begin() as c:
        c.execute(text("CREATE INDEX IF NOT EXISTS ha_states_old ON ha_states (old_state_id)"))
    return bad()


main(setup, bad, fixed)
