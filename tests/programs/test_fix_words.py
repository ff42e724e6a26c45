"""A fix uses the terms of the library through which the program executes SQL."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings import program
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.once

Run = Callable[..., CompletedProcess[str]]

DJANGO = """
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "app.db"}}, INSTALLED_APPS=[],
)
django.setup()
from django.db import connection, models

class Author(models.Model):
    name = models.TextField()
    class Meta:
        app_label = "library"

class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    class Meta:
        app_label = "library"

with connection.schema_editor() as editor:
    editor.create_model(Author)
    editor.create_model(Book)
for number in range(200):
    Author.objects.create(id=number + 1, name=f"author {number}")  # each commits
Book.objects.bulk_create(Book(author_id=number + 1) for number in range(200))

def names():
    return [book.author.name for book in Book.objects.all()]  # loads lazily

def get_all(numbers):
    return [Author.objects.get(id=number) for number in numbers]  # gets each

for _ in range(3):
    names()
    get_all(range(1, 201))
"""

ORDERS = """class Order(Base):
    __tablename__ = "orders"
    id = sa.Column(sa.Integer, primary_key=True)
    lines = orm.relationship("Line")

class Line(Base):
    __tablename__ = "lines"
    id = sa.Column(sa.Integer, primary_key=True)
    order_id = sa.Column(sa.ForeignKey("orders.id"), index=True)
"""

SQLALCHEMY = """
import sqlalchemy as sa
from sqlalchemy import orm

class Base(orm.DeclarativeBase):
    pass

MODELS
engine = sa.create_engine("sqlite:///app.db")
Base.metadata.create_all(engine)
with orm.Session(engine) as session:
    for number in range(200):
        session.add(Order(id=number + 1, lines=[Line(), Line()]))
        session.commit()  # each commits
with orm.Session(engine) as session:
    for order in session.scalars(sa.select(Order)):
        len(order.lines)  # loads lazily
with orm.Session(engine) as session:
    for number in range(1, 201):
        session.scalars(sa.select(Line).where(Line.order_id == number)).all()  # gets each
"""

SQLALCHEMY_ASYNC = """
import asyncio
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sa_asyncio

class Base(sa_asyncio.AsyncAttrs, orm.DeclarativeBase):
    pass

MODELS
async def load(db):
    for order in (await db.scalars(sa.select(Order))).all():
        len(await order.awaitable_attrs.lines)  # loads lazily

async def get(db):
    for number in range(1, 201):
        (await db.scalars(sa.select(Line).where(Line.order_id == number))).all()  # gets each

async def main():
    engine = sa_asyncio.create_async_engine("sqlite+aiosqlite:///app.db")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    sessions = sa_asyncio.async_sessionmaker(engine)
    async with sessions() as db:
        db.add_all([Order(id=number + 1, lines=[Line(), Line()]) for number in range(200)])
        await db.commit()
    async with sessions() as db:
        await load(db)
    async with sessions() as db:
        await get(db)
    await engine.dispose()

asyncio.run(main())
"""

PEEWEE = """
import peewee

db = peewee.SqliteDatabase("app.db")

class Author(peewee.Model):
    name = peewee.TextField()
    class Meta:
        database = db

class Book(peewee.Model):
    author = peewee.ForeignKeyField(Author)
    class Meta:
        database = db

db.create_tables([Author, Book])
for number in range(200):
    Author.create(name=str(number))  # each commits
with db.atomic():
    for author in Author.select():
        Book.create(author=author)
for _ in range(3):
    for book in Book.select():
        book.author.name  # gets each
"""

SQLITE_UTILS = """
import sqlite_utils

db = sqlite_utils.Database("app.db")
db["log"].create({"id": int, "text": str}, pk="id")
for number in range(200):
    db["log"].insert({"id": number, "text": "x"})  # each commits
"""


@pytest.mark.slow
def test_what_django_executes_under_debug_is_no_finding(tmp_path: Path, queryprof: Run) -> None:
    pytest.importorskip("django")
    text = DJANGO.replace("INSTALLED_APPS=[]", "INSTALLED_APPS=[], DEBUG=True")
    (tmp_path / "app.py").write_text(textwrap.dedent(text.replace("MODELS", ORDERS)))
    result = queryprof("run", "--no-report", "-o", "t.qprof", "app.py")
    assert result.returncode == 0, result.stderr
    report = Report(read_profile("t.qprof"))
    assert any(a.statement.startswith("SELECT QUOTE") for a in report.profile.aggregates)
    found = findings_of(report)
    assert not [one for one in found if one.statement.startswith("SELECT QUOTE")]
    assert any("select_related" in one.fix for one in found)


PROGRAMS = {
    "django": (
        DJANGO,
        {
            "each commits": "transaction.atomic()",
            "loads lazily": '.select_related("author")',
            "gets each": "filter(id__in=[...])",
        },
    ),
    "sqlalchemy": (
        SQLALCHEMY,
        {
            "each commits": "session.execute(insert(Model), rows)",
            "loads lazily": ".options(selectinload(Order.lines))",
            "gets each": "in_([...])",
        },
    ),
    "sqlalchemy.ext.asyncio": (
        SQLALCHEMY_ASYNC,
        {
            "loads lazily": ".options(selectinload(Order.lines))",
            "gets each": "in_([...])",
        },
    ),
    "peewee": (PEEWEE, {"each commits": "db.atomic()", "gets each": ".join(Other)"}),
    "sqlite_utils": (SQLITE_UTILS, {"each commits": "`with db.atomic():`"}),
}


@pytest.mark.parametrize("library", PROGRAMS)
@pytest.mark.repeats
def test_fixes(
    tmp_path: Path, queryprof: Run, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fix is at its line."""
    pytest.importorskip(library)
    monkeypatch.setattr(program, "NO_SHARE", 0.0)  # on a slow disk, the commits take nearly all
    text, fixes = PROGRAMS[library]
    (tmp_path / "app.py").write_text(textwrap.dedent(text.replace("MODELS", ORDERS)))
    result = queryprof("run", "--no-report", "-o", "t.qprof", "app.py")
    assert result.returncode == 0, result.stderr
    found = findings_of(Report(read_profile("t.qprof")))
    lines = (tmp_path / "app.py").read_text().splitlines()
    message: dict[str, str] = {}
    for one in found:
        line = lines[one.site.frame.line - 1] if one.site.frame else ""
        message.setdefault(line.rpartition("# ")[2], one.fix)
    wrong = {name: message.get(name) for name in fixes if fixes[name] not in message.get(name, "")}
    assert not wrong
