# healthy: one ranking of all rows, once, by an expression; making the certificates is the work
import hashlib

from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Run(Base):
    __tablename__ = "run"
    id: Mapped[int] = mapped_column(primary_key=True)
    runner: Mapped[str]
    start: Mapped[int]
    finish: Mapped[int]


def ranking(session):
    return session.execute(select(Run.runner, (Run.finish - Run.start).label("t")).order_by("t"))


def certificates(session):
    for place, (runner, seconds) in enumerate(ranking(session), 1):
        text = f"{place}. {runner} {seconds // 60}:{seconds % 60:02}"
        yield text, hashlib.pbkdf2_hmac("sha256", text.encode(), b"marathon", 400).hex()


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.execute(
        insert(Run),
        [{"runner": f"r{n}", "start": n % 60, "finish": 9000 + n * 37 % 7001} for n in range(3000)],
    )
    session.commit()
    assert len(dict(certificates(session))) == 3000
