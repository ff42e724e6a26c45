"""The usual test set-ups of Django, SQLAlchemy and pytest-asyncio, with the plugin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from queryprof.testing.baseline_file import read_baseline

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("installed_plugins")]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Run:
    """Run pytest in its own process, in the test's directory."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plain, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def asked(test: str) -> dict[str, int]:
    """Return the executions of a test in the baseline, by statement."""
    tests = read_baseline("queryprof-baseline.json").tests
    return {statement: figures["executions"] for statement, figures in tests[test].items()}


def replace(file: str, old: str, new: str) -> None:
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))


DJANGO = {
    "settings.py": """
SECRET_KEY = "x"
INSTALLED_APPS = ["library"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = True
""",
    "pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = settings\n",
    "library/__init__.py": "",
    "library/models.py": """
from django.db import models

class Author(models.Model):
    name = models.CharField(max_length=50)

class Book(models.Model):
    title = models.CharField(max_length=50, db_index=True)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)

def titles():
    return [f"{book.title} by {book.author.name}" for book in Book.objects.select_related("author")]
""",
    "test_library.py": """
import threading
import pytest
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from library.models import Author, Book, titles

def fill():
    for number in range(12):
        author = Author.objects.create(name=f"author {number}")
        Book.objects.create(title=f"book {number}", author=author)

class TestTitles(TestCase):
    @classmethod
    def setUpTestData(cls):
        fill()

    def test_titles(self):
        assert len(titles()) == 12

    def test_atomic(self):
        with transaction.atomic():
            Book.objects.filter(title="book 3").update(title="new")
        assert Book.objects.get(title="new").author.name == "author 3"

    def test_number_of_queries(self):
        with self.assertNumQueries(1):
            titles()

class TestThreads(TransactionTestCase):
    def test_in_a_thread(self):
        fill()
        found = []

        def work():
            found.append(Book.objects.count())
            connection.close()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [12]

@pytest.mark.django_db
def test_function(django_assert_num_queries):
    fill()
    with django_assert_num_queries(1):
        titles()
""",
}


@pytest.mark.slow
def test_django(run: Run) -> None:
    """Transaction per test, database in memory, threads, pytest-django; a lost select_related.

    What Django asks to clean up, in an order that changes from run to run, is not the test's.
    """
    pytest.importorskip("pytest_django")
    for name, text in DJANGO.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    bare = run("-p", "no:queryprof")
    assert bare.returncode == 0, bare.stdout
    saved = run("--queryprof-save")
    assert saved.returncode == 0, saved.stdout
    join = (
        'SELECT "library_book"."id", "library_book"."title", "library_book"."author_id",'
        ' "library_author"."id", "library_author"."name" FROM "library_book" INNER JOIN'
        ' "library_author" ON ("library_book"."author_id" = "library_author"."id")'
    )
    assert asked("test_library.py::TestTitles::test_titles") == {join: 1}
    assert not any(
        statement.startswith(("SAVEPOINT", "RELEASE", "BEGIN"))
        for statement in asked("test_library.py::TestTitles::test_atomic")
    )
    in_a_thread = asked("test_library.py::TestThreads::test_in_a_thread")
    assert in_a_thread['SELECT COUNT(*) AS "__count" FROM "library_book"'] == 1
    for more in ((), (), ("-n", "2")):  # workers run pytest from code without a file
        checked = run("--queryprof-check", *more)
        assert checked.returncode == 0, checked.stdout
    replace("library/models.py", '.select_related("author")', ".all()")
    checked = run("--queryprof-check", "-k", "test_titles")
    assert checked.returncode == 1
    assert "library/models.py:12" in checked.stdout
    assert "several times from one line" in checked.stdout


SQLALCHEMY = """
import threading
import pytest
from sqlalchemy import ForeignKey, create_engine, event, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload
from sqlalchemy.pool import StaticPool

class Base(DeclarativeBase):
    pass

class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list["Book"]] = relationship(back_populates="author")

class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(index=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"), index=True)
    author: Mapped[Author] = relationship(back_populates="books")

@pytest.fixture(scope="session")
def engine():
    engine = create_engine("sqlite://", poolclass=StaticPool,
                           connect_args={"check_same_thread": False, "isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()

@pytest.fixture
def session(engine):
    # A transaction a test, rolled back; what the test commits is a savepoint.
    with engine.connect() as connection, connection.begin() as transaction:
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            for number in range(12):
                session.add(Author(name=f"author {number}", books=[Book(title=f"book {number}")]))
            session.commit()
            yield session
        transaction.rollback()

def counts(session):
    authors = session.scalars(select(Author).options(selectinload(Author.books))).all()
    return [len(author.books) for author in authors]

def test_counts(session):
    assert counts(session) == [1] * 12

def test_commit(session):
    session.add(Author(name="new"))
    session.commit()
    assert session.scalar(select(func.count()).select_from(Author)) == 13

def test_again(session):
    assert session.scalar(select(Book.title).where(Book.title == "book 3")) == "book 3"

def test_in_a_thread(engine, session):
    found = []
    thread = threading.Thread(target=lambda: found.append(counts(session)))
    thread.start()
    thread.join()
    assert found == [[1] * 12]
"""


@pytest.mark.slow
def test_sqlalchemy(run: Run) -> None:
    """A session in an outer transaction, one connection in memory, a thread; a lost prefetch."""
    pytest.importorskip("sqlalchemy")
    Path("test_books.py").write_text(SQLALCHEMY)
    bare = run("-p", "no:queryprof")
    assert bare.returncode == 0, bare.stdout
    saved = run("--queryprof-save")
    assert saved.returncode == 0, saved.stdout
    authors = "SELECT author.id, author.name FROM author"
    assert asked("test_books.py::test_counts")[authors] == 1
    assert len(asked("test_books.py::test_counts")) == 2
    assert asked("test_books.py::test_in_a_thread") == asked("test_books.py::test_counts")
    for _ in range(2):
        checked = run("--queryprof-check")
        assert checked.returncode == 0, checked.stdout
    replace("test_books.py", ".options(selectinload(Author.books))", "")
    checked = run("--queryprof-check", "-k", "counts")
    assert checked.returncode == 1
    lines = Path("test_books.py").read_text().splitlines()
    line = 1 + lines.index("    return [len(author.books) for author in authors]")
    assert f"test_books.py:{line}" in checked.stdout
    assert "several times from one line" in checked.stdout


ASYNC = """
import asyncio, sqlite3
import aiosqlite, pytest, pytest_asyncio

@pytest_asyncio.fixture
async def db():
    async with aiosqlite.connect(":memory:") as connection:
        await connection.execute("CREATE TABLE t (a, b)")
        await connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(20)])
        yield connection

async def load(db, number):
    async with db.execute("SELECT b FROM t WHERE a = ?", (number,)) as cursor:
        return await cursor.fetchone()

@pytest.mark.asyncio
async def test_load(db):
    for number in range(3):
        assert await load(db, number) == (number,)

@pytest.mark.asyncio
async def test_together(db):
    await asyncio.gather(*(load(db, number) for number in range(5)))

@pytest.mark.asyncio
async def test_on_the_loop():
    connection = sqlite3.connect(":memory:")
    connection.execute("SELECT 1").fetchall()
    connection.close()
"""


@pytest.mark.slow
def test_pytest_asyncio(run: Run) -> None:
    """Coroutine tests are recorded like others. Queries in aiosqlite's thread count for
    the test.
    """
    pytest.importorskip("pytest_asyncio")
    pytest.importorskip("aiosqlite")
    Path("test_async.py").write_text(ASYNC)
    assert run("-p", "no:queryprof").returncode == 0
    saved = run("--queryprof-save")
    assert saved.returncode == 0, saved.stdout
    assert asked("test_async.py::test_load") == {"SELECT b FROM t WHERE a = ?": 3}
    assert asked("test_async.py::test_together") == {"SELECT b FROM t WHERE a = ?": 5}
    assert asked("test_async.py::test_on_the_loop") == {"SELECT ?": 1}
    for _ in range(2):
        checked = run("--queryprof-check")
        assert checked.returncode == 0, checked.stdout
    replace("test_async.py", "range(3)", "range(4)")
    checked = run("--queryprof-check")
    assert (checked.returncode, "3 -> 4" in checked.stdout) == (1, True)
