# category: pinned_wal
# fix: commit|rollback|end (the|its) (read )?transaction|close (the |its )?(session|connection)
import os
import threading

from sqlalchemy import create_engine, event, func, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "purchase"
    id: Mapped[int] = mapped_column(primary_key=True)
    note: Mapped[str]


if os.path.exists("shop.db"):
    os.remove("shop.db")
engine = create_engine("sqlite:///shop.db")


@event.listens_for(engine, "connect")
def on_connect(connection, _record):
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")


@event.listens_for(engine, "begin")
def on_begin(connection):
    connection.exec_driver_sql("BEGIN")


def dashboard(shown, stop):
    session = Session(engine)  # one for the life of the thread, never committed
    shown.append(session.scalar(select(func.count(Order.id))))  # culprit
    while not stop.wait(0.05):
        shown.append(session.scalar(select(func.count(Order.id))))  # culprit
    session.close()


Base.metadata.create_all(engine)
shown, stop = [], threading.Event()
thread = threading.Thread(target=dashboard, args=(shown, stop))
thread.start()
for batch in range(14):
    with Session(engine) as session:
        session.execute(insert(Order), [{"note": "y" * 2500} for _ in range(500)])
        session.commit()
    stop.wait(0.09)
stop.set()
thread.join()
assert len(set(shown)) == 1 and os.path.getsize("shop.db-wal") > 10_000_000
