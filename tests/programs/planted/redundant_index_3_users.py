# category: redundant_index
# fix: Drop "?(ix_player_handle|player_handle)"?
import os

from sqlalchemy import Index, UniqueConstraint, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Player(Base):
    __tablename__ = "player"
    __table_args__ = (UniqueConstraint("handle"), Index("ix_player_handle", "handle"))
    id: Mapped[int] = mapped_column(primary_key=True)
    handle: Mapped[str]
    rank: Mapped[int]


def season(session, number):
    names = ({"handle": f"{n * 7919 % 1_000_003:07d}-{number}-player", "rank": n} for n in range(10_000))
    session.execute(insert(Player), list(names))  # culprit
    session.commit()


def find(session, handle):
    return session.scalar(select(Player).where(Player.handle == handle))


if os.path.exists("game.db"):
    os.remove("game.db")
engine = create_engine("sqlite:///game.db")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for number in range(4):
        season(session, number)
    assert find(session, "0007919-2-player").rank == 1
