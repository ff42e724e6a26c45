"""Findings that fail a test with few rows, selected by one setting (queryprof_fail_on)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytest_plugin import pytest_runs
from pytest_plugin.pytest_runs import Run

from queryprof.findings.few_rows import RULES
from queryprof.findings.finding import CATEGORIES, TEST_CATEGORIES

pytestmark = pytest.mark.once
run = pytest_runs.run

SHOP = """
import sqlite3
db = sqlite3.connect(":memory:")
db.executescript('''
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT);
    INSERT INTO author VALUES (1, 'a'), (2, 'b'), (3, 'c');
    INSERT INTO book VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z');
''')

def name_of(author):
    return db.execute("SELECT name FROM author WHERE id = ?", (author,)).fetchone()

def names(number):
    found = []
    for _, author in db.execute("SELECT id, author_id FROM book LIMIT ?", (number,)).fetchall():
        found.append(db.execute("SELECT name FROM author WHERE id = ?", (author,)).fetchone())
    return found

def books_of(author):
    return db.execute("SELECT title FROM book WHERE author_id = ?", (author,)).fetchall()

def all_books():
    return db.execute("SELECT title FROM book").fetchall()
"""
TESTS = """
import SHOP

def test_three():
    assert len(SHOP.names(3)) == 3

def test_two():
    assert len(SHOP.names(2)) == 2

def test_its_own_loop():
    assert all(SHOP.name_of(one) for one in (1, 2, 3))

def test_its_own_scan():
    assert SHOP.db.execute("SELECT id FROM book WHERE title = 'x'").fetchall()

def test_scan():
    assert SHOP.books_of(2)

def test_all_of_a_table():
    assert SHOP.all_books()
"""


@pytest.fixture
def shop(run: Run, request: pytest.FixtureRequest) -> str:
    """Return a new module name for each test, since all tests run in one process."""
    name = "shop_" + request.node.name.partition("[")[0]
    Path(f"{name}.py").write_text(SHOP)
    Path("test_shop.py").write_text(TESTS.replace("SHOP", name))
    return name


def settings(text: str) -> None:
    Path("pytest.ini").write_text(f"[pytest]\n{text}\n")


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("fail_on", "failed"),
    [
        ("n_plus_one full_scan", ["test_three", "test_scan"]),
        ("n_plus_one", ["test_three"]),
        ("full_scan", ["test_scan"]),
        ("counts plans", []),
    ],
)
@pytest.mark.repeats
def test_selected_findings_fail(run: Run, fail_on: str, failed: list[str]) -> None:
    """Three executions in a loop of the program are too many; two are not."""
    settings(f"queryprof_fail_on = {fail_on}")
    result = run("-rf")
    lines = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.split("::")[1].split(" ")[0] for line in lines] == failed
    assert result.returncode == bool(failed)


@pytest.mark.usefixtures("shop")
def test_the_failure_shows_what_to_do(run: Run) -> None:
    settings("queryprof_fail_on = n_plus_one full_scan")
    shown = run().stdout
    for line in (
        "3 executions from this line",
        "the loop is in line 16 of names",
        "-> Fetch all rows before the loop",
        "it reads all of book",
        "CREATE INDEX book_author_id ON book (author_id);",
        "(to accept this finding, add it to `accepted` of [tool.queryprof])",
    ):
        assert line in shown, line


@pytest.mark.usefixtures("shop")
@pytest.mark.slow
def test_one_that_is_accepted(run: Run) -> None:
    settings("queryprof_fail_on = n_plus_one")
    (identity,) = {word for word in run().stdout.split() if word.startswith("n_plus_one-")}
    accepted = f'accepted = [{{ finding = "{identity.rstrip(":")}", reason = "three at most" }}]'
    Path("queryprof.toml").write_text(accepted)
    assert run().returncode == 0


@pytest.mark.usefixtures("shop")
def test_a_name_that_is_none(run: Run) -> None:
    settings("queryprof_fail_on = n_plus_won")
    result = run()
    assert (result.returncode, "n_plus_won: unknown; use counts" in result.stderr) == (4, True)


def test_each_category_has_its_rule() -> None:
    assert set(RULES) == TEST_CATEGORIES <= set(CATEGORIES)


MODELS = """
import sqlalchemy as sa
from sqlalchemy import orm

class Base(orm.DeclarativeBase):
    pass

class Author(Base):
    __tablename__ = "author"
    id = sa.Column(sa.Integer, primary_key=True)

class Book(Base):
    __tablename__ = "book"
    id = sa.Column(sa.Integer, primary_key=True)
    author_id = sa.Column(sa.ForeignKey("author.id"))
    author = orm.relationship("Author")

engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
Base.metadata.create_all(engine)
with orm.Session(engine) as db:
    db.add_all(Book(author=Author()) for _ in range(2))
    db.commit()

def by_key(number):
    with orm.Session(engine) as db:
        return db.get(Author, number)

def one_by_one(keys):
    with orm.Session(engine) as db:
        return [db.scalars(sa.select(Book.id).where(Book.id.in_([key]))).all() for key in keys]

def authors(number):
    with orm.Session(engine) as db:
        return [book.author.id for book in db.scalars(sa.select(Book).limit(number))]
"""


@pytest.mark.slow
def test_a_relation_of_sqlalchemy(tmp_path: Path) -> None:
    """Two objects are enough, and the finding has the relation."""
    pytest.importorskip("sqlalchemy")
    tests = "from shop import authors\ndef test_two(): assert authors(2)\n"
    shown = alone(tmp_path, MODELS, f"{tests}def test_one(): assert authors(1)\n")
    assert "1 failed, 1 passed" in shown, shown
    assert ".options(selectinload(Book.author))" in shown


CALLED_AGAIN = """
import unittest, shop, helpers_of_tests.made

def test_lazy(): assert shop.authors(2)
def test_in_a_loop_of_its_own():
    for number in (1, 2): assert shop.by_key(number)
def test_in_a_comprehension(): assert all(shop.by_key(number) for number in (1, 2, 1))
def test_twice():
    assert shop.authors(1)
    assert shop.authors(1)
def test_lists_of_keys(): assert shop.one_by_one([1, 2, 1])
def test_a_helper(): assert helpers_of_tests.made.many()

class Prepared(unittest.TestCase):
    def setUp(self): shop.authors(2)
    def test_nothing(self): pass
"""


@pytest.mark.slow
def test_what_a_test_does_again_is_its_own(tmp_path: Path) -> None:
    """Loops and calls of the test, of its fixtures and of its helpers count for it. A relation that
    another test loads with the same statement is not reported here.
    """
    pytest.importorskip("sqlalchemy")
    folder = tmp_path / "helpers_of_tests" / "tests"
    folder.mkdir(parents=True)
    (folder.parent / "made.py").write_text("from helpers_of_tests.tests.more import many")
    (folder / "more.py").write_text(
        "import shop\ndef many(): return [shop.by_key(1) for _ in 'abc']"
    )
    shown = alone(tmp_path, MODELS, CALLED_AGAIN)
    assert "FAILED test_shop.py::test_lazy - " in shown
    assert "1 failed, 6 passed" in shown, shown


DJANGO = """
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
import django
django.setup()
from django.db import connection, models

class Author(models.Model):
    name = models.TextField()
    class Meta:
        app_label = "shop"

class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    title = models.TextField()
    class Meta:
        app_label = "shop"

with connection.schema_editor() as editor:
    editor.create_model(Author)
    editor.create_model(Book)
for name in "ab":
    Book.objects.create(author=Author.objects.create(name=name), title=name)

def names():
    return [book.author.name for book in Book.objects.all()]

def titled(title):
    return list(Book.objects.filter(title=title))
"""
DJANGO_TESTS = """
import shop
def test_names(): assert shop.names() == ["a", "b"]
def test_title(): assert shop.titled("a")
"""


def test_django(tmp_path: Path) -> None:
    """The finding has the relation, and the index in Django's notation."""
    pytest.importorskip("django")
    shown = alone(tmp_path, DJANGO, DJANGO_TESTS)
    for text in ('.select_related("author")', 'models.Index(fields=["title"])', "2 failed"):
        assert text in shown, shown


def alone(folder: Path, program: str, tests: str) -> str:
    """Return pytest's output in a separate process: C libraries are loaded once per process."""
    (folder / "shop.py").write_text(program)
    (folder / "test_shop.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nqueryprof_fail_on = n_plus_one full_scan\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "no:asyncio"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout
