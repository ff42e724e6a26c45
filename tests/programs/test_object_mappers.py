"""Object mappers and other libraries on top of the drivers: the call site is the program's line,
and lazy loads are labeled.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import queryprof
from conftest import traces_in
from queryprof.model import Profile

pytestmark = pytest.mark.once

HERE = Path(__file__).name


def asked(profile: Profile) -> Counter[tuple[str, str]]:
    """Return executions by (innermost function, first word of the statement). All of them are in
    this file.
    """
    found: Counter[tuple[str, str]] = Counter()
    for aggregate in profile.aggregates:
        if aggregate.operation in ("execute", "executemany"):
            frame = aggregate.path[0]
            assert Path(frame.file).name == HERE, aggregate
            word = aggregate.statement.split()[0]
            found[frame.function.rpartition(".")[2], word] += aggregate.count
    return found


def library() -> SimpleNamespace:
    """SQLAlchemy's models of authors with books."""
    import sqlalchemy as sa
    from sqlalchemy import orm

    class Base(orm.DeclarativeBase):
        pass

    class Author(Base):
        __tablename__ = "author"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String)
        books = orm.relationship("Book", back_populates="author")

    class Book(Base):
        __tablename__ = "book"
        id = sa.Column(sa.Integer, primary_key=True)
        author_id = sa.Column(sa.ForeignKey("author.id"))
        author = orm.relationship("Author", back_populates="books")

    def fill(db: orm.Session) -> None:
        for number in range(1, 6):
            db.add(Author(id=number, name=f"author {number}", books=[Book(), Book()]))
        db.commit()

    return SimpleNamespace(Base=Base, Author=Author, Book=Book, fill=fill)


def test_sqlalchemy_core_and_orm() -> None:
    """The call site is the line that queried, or that read the attribute. The note has the
    relationship.
    """
    sa = pytest.importorskip("sqlalchemy")
    from sqlalchemy import orm
    from sqlalchemy.orm import strategies

    models = library()
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    models.Base.metadata.create_all(engine)
    with orm.Session(engine) as db:
        models.fill(db)

    def core(connection: sa.Connection) -> None:
        assert connection.execute(sa.text("SELECT 1 AS core")).scalar() == 1

    def query(db: orm.Session) -> list[object]:
        return list(db.scalars(sa.select(models.Author).order_by(models.Author.id)))

    def read_books(author: object) -> int:
        return len(author.books)  # type: ignore[attr-defined]

    def read_author(book: object) -> str:
        return str(book.author.name)  # type: ignore[attr-defined]

    def eager(db: orm.Session) -> None:
        loaded = db.scalars(sa.select(models.Author).options(orm.selectinload(models.Author.books)))
        for author in loaded:
            assert read_books(author) == 2

    loader = getattr(strategies, "_LazyLoader", None) or strategies.LazyLoader
    original = vars(loader)["_emit_lazyload"]
    with queryprof.profile() as recording:
        with engine.connect() as connection:
            core(connection)
        with orm.Session(engine) as db:
            assert sum(map(read_books, query(db))) == 10
        with orm.Session(engine) as db:
            assert read_author(db.get_one(models.Book, 3)) == "author 2"
        with orm.Session(engine) as db:
            eager(db)
    assert vars(loader)["_emit_lazyload"] is original
    profile = recording.profile
    assert asked(profile) == {
        ("core", "SELECT"): 1,
        ("query", "SELECT"): 1,
        ("read_books", "SELECT"): 5,
        ("test_sqlalchemy_core_and_orm", "SELECT"): 1,
        ("read_author", "SELECT"): 1,
        ("eager", "SELECT"): 2,
    }
    assert sorted(profile.notes.values()) == [
        "lazy load of Author.books",
        "lazy load of Book.author",
    ]
    (lazy,) = [s for s, note in profile.notes.items() if note.endswith("books")]
    assert {
        a.path[0].function.rpartition(".")[2] for a in profile.aggregates if a.statement == lazy
    } == {"read_books"}
    engine.dispose()


def test_sqlalchemy_async(tmp_path: Path) -> None:
    """With aiosqlite, the driver runs in a thread, and another greenlet awaits it."""
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("aiosqlite")
    from sqlalchemy import orm
    from sqlalchemy.ext import asyncio as sa_asyncio

    models = library()

    async def query(db: sa_asyncio.AsyncSession) -> list[object]:
        return list(await db.scalars(sa.select(models.Author).order_by(models.Author.id)))

    async def core(db: sa_asyncio.AsyncSession) -> None:
        await db.execute(sa.text("SELECT 1 AS core"))

    def count_books(db: orm.Session) -> int:
        return sum(len(author.books) for author in db.scalars(sa.select(models.Author)))

    async def lazily(db: sa_asyncio.AsyncSession) -> int:
        return await db.run_sync(count_books)

    async def main() -> None:
        engine = sa_asyncio.create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/library.db")
        async with engine.begin() as connection:
            await connection.run_sync(models.Base.metadata.create_all)
        async with sa_asyncio.AsyncSession(engine) as db:
            await db.run_sync(models.fill)
        with queryprof.profile() as recording:
            async with sa_asyncio.AsyncSession(engine) as db:
                assert len(await query(db)) == 5
                await core(db)
            async with sa_asyncio.AsyncSession(engine) as db:
                assert await lazily(db) == 10
        await engine.dispose()
        found = asked(recording.profile)
        assert found["query", "SELECT"] == 1
        assert found["core", "SELECT"] == 1
        assert found["lazily", "SELECT"] + found["count_books", "SELECT"] == 1 + 5
        assert list(recording.profile.notes.values()) == ["lazy load of Author.books"]
        assert {h.kind for h in recording.profile.handoffs} == {"aiosqlite"}

    asyncio.run(main())


def test_peewee() -> None:
    peewee = pytest.importorskip("peewee")
    database = peewee.SqliteDatabase(":memory:")

    class Person(peewee.Model):  # type: ignore[misc,name-defined]
        name = peewee.TextField()

        class Meta:
            pass

    Person.bind(database)
    database.create_tables([Person])

    def write() -> None:
        Person.create(name="one")
        Person.insert_many([{"name": "two"}, {"name": "three"}]).execute()

    def read() -> list[str]:
        return [person.name for person in Person.select().order_by(Person.id)]

    with queryprof.profile() as recording:
        write()
        assert read() == ["one", "two", "three"]
    found = asked(recording.profile)
    assert found["write", "INSERT"] == 2
    assert sum(n for (function, _), n in found.items() if function in ("read", "<listcomp>")) == 1
    database.close()


def test_pony(tmp_path: Path) -> None:
    orm = pytest.importorskip("pony.orm")
    database = orm.Database("sqlite", f"{tmp_path}/pony.db", create_db=True)

    class Person(database.Entity):  # type: ignore[misc,name-defined]
        name = orm.Required(str)

    database.generate_mapping(create_tables=True)

    def write() -> None:
        with orm.db_session:
            Person(name="one")
            orm.flush()

    def read() -> str:
        with orm.db_session:
            return str(Person.get(name="one").name)

    with queryprof.profile() as recording:
        write()
        assert read() == "one"
    found = asked(recording.profile)
    assert found["write", "INSERT"] == 1
    assert found["read", "SELECT"] == 1
    database.disconnect()


def test_sqlite_utils() -> None:
    sqlite_utils = pytest.importorskip("sqlite_utils")
    database = sqlite_utils.Database(memory=True)

    def write() -> None:
        database["person"].insert_all([{"id": 1, "name": "one"}, {"id": 2, "name": "two"}])

    def read() -> list[object]:
        return list(database["person"].rows_where("id > ?", [1]))

    with queryprof.profile() as recording:
        write()
        assert read() == [{"id": 2, "name": "two"}]
    found = asked(recording.profile)
    assert found["write", "INSERT"] == 1
    assert found["read", "SELECT"] >= 1
    database.conn.close()


DJANGO = """
import queryprof
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[], ROOT_URLCONF="program", SECRET_KEY="x", ALLOWED_HOSTS=["*"],
)
django.setup()
from django.db import connection, models
from django.http import HttpResponse
from django.urls import include, path, re_path

class Author(models.Model):
    name = models.TextField()
    class Meta:
        app_label = "library"

class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    class Meta:
        app_label = "library"

def get(number):
    return Author.objects.get(id=number)

def names():
    return [read_author(book) for book in Book.objects.order_by("id")]

def read_author(book):
    return book.author.name

def view(request, number):
    return HttpResponse(get(number).name)

urlpatterns = [
    path("authors/<int:number>/", view),
    re_path(r"^exact/", include([re_path(r"^(?P<number>[^/.]+)/$", view)])),
]

if __name__ == "__main__":
    from django.core.wsgi import get_wsgi_application
    from django.test import RequestFactory
    import sys
    sys.modules["program"] = sys.modules["__main__"]
    application = queryprof.WsgiMiddleware(get_wsgi_application())
    with connection.schema_editor() as editor:
        editor.create_model(Author)
        editor.create_model(Book)
    for number in range(1, 4):
        Book.objects.create(author=Author.objects.create(name=f"author {number}"))
    queryprof.install("django.qprof")
    import copy, pickle
    from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor
    get_object = ForwardManyToOneDescriptor.get_object
    assert pickle.loads(pickle.dumps(get_object)) is get_object is copy.deepcopy(get_object)
    assert get(2).name == "author 2"
    assert names() == ["author 1", "author 2", "author 3"]
    paths = [*(f"/authors/{number}/" for number in (1, 2, 3, 3)), "/exact/1/"]
    for where in paths:
        number = int(where[-2])
        environ = RequestFactory().get(where).environ
        body = application(environ, lambda *_: None)
        assert b"".join(body) == b"author %d" % number
        body.close()
"""


@pytest.mark.slow
def test_django(tmp_path: Path) -> None:
    """Statements have the ORM's lines, and requests the pattern of their route."""
    pytest.importorskip("django")
    (tmp_path / "program.py").write_text(DJANGO)
    subprocess.run([sys.executable, "program.py"], check=True, timeout=60)
    (profile,) = traces_in(tmp_path)
    found = Counter[tuple[str, str]]()
    for a in profile.aggregates:
        if a.operation == "execute" and a.statement.startswith("SELECT"):
            found[a.path[0].function, a.span] += a.count
    found["names", ""] += found.pop(("names.<locals>.<listcomp>", ""), 0)
    assert found == {
        ("get", ""): 1,
        ("names", ""): 1,
        ("read_author", ""): 3,
        ("get", "GET /authors/<int:number>/"): 4,
        ("get", "GET /exact/(?P<number>[^/.]+)/"): 1,
    }
    assert list(profile.notes.values()) == ["lazy load of Book.author"]
    span = next(span for span in profile.spans if "authors" in span.name)
    assert (span.count, span.queries.total_ns) == (4, 4)


@pytest.mark.slow
def test_datasette(tmp_path: Path) -> None:
    """Queries run in a thread pool of a web application. The line is datasette's own if the stack
    has no frame of the program. Requests are separate.
    """
    pytest.importorskip("datasette")
    (tmp_path / "program.py").write_text(
        """
import asyncio, sqlite3, queryprof
sqlite3.connect("d.db").executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)")
from datasette.app import Datasette
async def main():
    datasette = Datasette(["d.db"])
    await datasette.invoke_startup()
    queryprof.install("datasette.qprof")
    response = await datasette.client.get("/d/t.json?_shape=array")
    assert [row["x"] for row in response.json()] == [1, 2], response.text
asyncio.run(main())
"""
    )
    subprocess.run([sys.executable, "program.py"], check=True, timeout=60)
    (profile,) = traces_in(tmp_path)
    selects = [a for a in profile.aggregates if a.statement.startswith("SELECT rowid, x FROM t ")]
    assert selects
    assert {a.path[0].function for a in selects} == {"main"}
    assert {h.kind for h in profile.handoffs} == {"thread pool"}
