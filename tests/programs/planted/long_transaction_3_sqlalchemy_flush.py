# category: long_transaction
# fix: before BEGIN|after COMMIT|other work
import os
import threading
import zlib

from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Document(Base):
    __tablename__ = "document"
    id: Mapped[int] = mapped_column(primary_key=True)
    packed: Mapped[bytes | None]


class Visit(Base):
    __tablename__ = "visit"
    id: Mapped[int] = mapped_column(primary_key=True)
    page: Mapped[int]


engine = create_engine("sqlite:///archive.db", connect_args={"timeout": 30})
begun = threading.Event()


def store(session: Session, texts: list[bytes]) -> None:
    for text in texts:
        document = Document()
        session.add(document)
        session.flush()  # culprit
        begun.set()
        document.packed = zlib.compress(b"%d " % document.id + text, 9)  # culprit
    session.commit()


def archive() -> None:
    with Session(engine) as session:
        for part in range(4):
            store(session, [b" ".join(b"%d" % (n * n) for n in range(20_000 + part)) for _ in range(3)])  # culprit


def log() -> None:
    begun.wait()
    for page in range(4):
        with Session(engine) as session:
            session.add(Visit(page=page))
            session.commit()


if os.path.exists("archive.db"):
    os.remove("archive.db")
Base.metadata.create_all(engine)
workers = [threading.Thread(target=archive), threading.Thread(target=log)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
engine.dispose()
os.remove("archive.db")
