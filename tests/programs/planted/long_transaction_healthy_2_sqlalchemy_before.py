"""Computes first, then writes in one short transaction, twice from two threads."""
import hashlib
import os
import threading

from sqlalchemy import create_engine, insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Key(Base):
    __tablename__ = "key"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    digest: Mapped[str]


engine = create_engine("sqlite:///keys.db", connect_args={"timeout": 30})


def derive(owner: str) -> dict[str, str]:
    return {"owner": owner, "digest": hashlib.pbkdf2_hmac("sha256", owner.encode(), b"s", 4000).hex()}


def enrol(group: int) -> None:
    rows = [derive(f"user {group}-{number}") for number in range(120 + 60 * group)]
    with Session(engine) as session, session.begin():
        session.execute(insert(Key), rows)


if os.path.exists("keys.db"):
    os.remove("keys.db")
Base.metadata.create_all(engine)
workers = [threading.Thread(target=enrol, args=(group,)) for group in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
engine.dispose()
os.remove("keys.db")
