"""Measure the cost of recording through other libraries: `make bench`.

Every case alternates between bare and recorded rounds, in one process. The output is the shortest
bare time of an operation, and the median ratio of each round to its bare time. psycopg needs
PostgreSQL's server, which this program starts.

    python benchmarks/drivers.py [--rounds 15] [CASE...]
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from queryprof.collect.target import TraceTarget
from queryprof.recorder.session import session

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgresql import server

ROWS = 1000
Work = Callable[[int], object]
"""Does an operation a number of times."""


@contextmanager
def sqlalchemy_orm_select() -> Iterator[Work]:
    import sqlalchemy as sa
    from sqlalchemy import orm

    class Base(orm.DeclarativeBase):
        pass

    class Item(Base):
        __tablename__ = "item"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String)

    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as db:
        db.add_all(Item(id=number, name=f"item {number}") for number in range(ROWS))
        db.commit()

    def work(times: int) -> None:
        with orm.Session(engine) as db:
            for number in range(times):
                db.scalars(sa.select(Item).where(Item.id == number % ROWS)).one()

    yield work
    engine.dispose()


@contextmanager
def django_get() -> Iterator[Work]:
    import django
    from django.conf import settings
    from django.db import connection, models

    if not settings.configured:
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        settings.configure(DATABASES={"default": database}, INSTALLED_APPS=[])
        django.setup()

    class Item(models.Model):  # noqa: DJ008 none is displayed
        name = models.TextField()

        class Meta:
            app_label = "benchmark"

    with connection.schema_editor() as editor:
        editor.create_model(Item)
    Item.objects.bulk_create(Item(id=number + 1, name=f"item {number}") for number in range(ROWS))

    def work(times: int) -> None:
        for number in range(times):
            Item.objects.get(id=number % ROWS + 1)

    yield work
    connection.close()


@contextmanager
def aiosqlite_point_select(has_timer: bool) -> Iterator[Work]:
    """With a timer in the event loop, like every program with a timeout, or without."""
    import aiosqlite

    with asyncio.Runner() as runner:

        async def open_database() -> aiosqlite.Connection:
            database = await aiosqlite.connect(":memory:")
            await database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
            rows = [(number, f"item {number}") for number in range(ROWS)]
            await database.executemany("INSERT INTO item VALUES (?, ?)", rows)
            return database

        database = runner.run(open_database())

        async def select(times: int) -> None:
            timer = asyncio.get_running_loop().call_later(60, gc.collect) if has_timer else None
            for number in range(times):
                async with database.execute(
                    "SELECT name FROM item WHERE id = ?", (number % ROWS,)
                ) as cursor:
                    await cursor.fetchone()
            if timer:
                timer.cancel()

        yield lambda times: runner.run(select(times))
        runner.run(database.close())


@contextmanager
def psycopg_point_select() -> Iterator[Work]:
    import psycopg

    with server() as address:
        connection = psycopg.connect(address, autocommit=True)
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text)")
        connection.execute(
            "INSERT INTO item SELECT n, 'item ' || n FROM generate_series(0, %s) n", (ROWS,)
        )
        cursor = connection.cursor()

        def work(times: int) -> None:
            for number in range(times):
                cursor.execute("SELECT name FROM item WHERE id = %s", (number % ROWS,))
                cursor.fetchone()

        yield work
        connection.close()


CASES: dict[str, tuple[Callable[[], Any], int, str]] = {
    "SQLAlchemy": (sqlalchemy_orm_select, 500, "ORM select by key"),
    "Django": (django_get, 500, ".get()"),
    "aiosqlite": (
        lambda: aiosqlite_point_select(True),
        800,
        "point select, a timer in the loop",
    ),
    "aiosqlite alone": (
        lambda: aiosqlite_point_select(False),
        800,
        "point select, no timer in the loop",
    ),
    "psycopg": (psycopg_point_select, 1000, "point select, local socket"),
}


def run_ns(work: Work, times: int, recorded: bool) -> float:
    if recorded:
        session.start()
        session.open_trace(TraceTarget(":memory:"))
    try:
        work(times // 10 + 1)
        gc.collect()
        gc.disable()
        started_ns = time.perf_counter_ns()
        work(times)
        return (time.perf_counter_ns() - started_ns) / times
    finally:
        gc.enable()
        if recorded:
            session.stop()


@click.command()
@click.argument("cases", nargs=-1, type=click.Choice(tuple(CASES)))
@click.option("--rounds", default=15, show_default=True)
def main(cases: tuple[str, ...], rounds: int) -> None:
    """Measure, and print a Markdown table."""
    print("| | bare | recorded |")
    print("|---|---:|---:|")
    for name in cases or CASES:
        prepare, times, what = CASES[name]
        bare, ratios = [], []
        with ExitStack() as stack:
            work = stack.enter_context(prepare())
            for number in track(range(rounds), name, console=Console(stderr=True), transient=True):
                order = (False, True) if number % 2 else (True, False)
                took = {recorded: run_ns(work, times, recorded) for recorded in order}
                bare.append(took[False])
                ratios.append(took[True] / took[False])
        print(f"| {name}: {what} | {min(bare):,.0f} ns | x{statistics.median(ratios):.3f} |")


if __name__ == "__main__":
    main()
