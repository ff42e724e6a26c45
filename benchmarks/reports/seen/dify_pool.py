"""langgenius/dify#22306 (pull request; also #21437). "QueuePool limit ... reached, connection timed
out": a session stays open while the model is called.

Cause: answer() reads the app's settings, calls the model (0.1 s) and writes the message in one
session: the connection is in use all that time, and the other threads wait for one.

Line: the with Session in answer() (the call of model() inside).

Fix: close the session before the slow call, and write in another one. No statement is slow.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from sqlalchemy import ForeignKey, create_engine, event, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from _main import main

engine = create_engine(
    "sqlite:///dify.db", pool_size=2, max_overflow=0, connect_args={"timeout": 10}
)
event.listen(
    engine, "connect", lambda connection, record: connection.execute("PRAGMA synchronous = NORMAL")
)


class Base(DeclarativeBase):
    pass


class App(Base):
    __tablename__ = "apps"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    prompt: Mapped[str]


class Message(Base):
    __tablename__ = "messages"
    id: Mapped[int] = mapped_column(primary_key=True)
    app_id: Mapped[int] = mapped_column(ForeignKey("apps.id"), index=True)
    answer: Mapped[str]


def setup():
    Base.metadata.create_all(engine)
    with engine.begin() as c:
        c.exec_driver_sql("PRAGMA journal_mode = WAL")
        c.execute(
            App.__table__.insert(),
            [{"id": i, "name": f"app {i}", "prompt": "be kind"} for i in range(1, 11)],
        )


def model(prompt):
    time.sleep(0.1)
    return prompt.upper()


def answer(number):
    with Session(engine) as session:
        app = session.get(App, 1 + number % 10)
        session.add(Message(app_id=app.id, answer=model(app.prompt)))
        session.commit()


def answer_short(number):
    with Session(engine) as session:
        prompt = session.scalar(select(App.prompt).where(App.id == 1 + number % 10))
    text = model(prompt)
    with Session(engine) as session:
        session.add(Message(app_id=1 + number % 10, answer=text))
        session.commit()


def run(function):
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(function, range(30)))
    with Session(engine) as session:
        return session.scalar(select(func.count()).select_from(Message))


main(setup, lambda: run(answer), lambda: run(answer_short))
