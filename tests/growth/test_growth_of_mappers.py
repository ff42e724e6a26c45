"""The growth of programs with an object mapper."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    relationship,
    selectinload,
)

import queryprof

pytestmark = pytest.mark.once


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    books: Mapped[list[Book]] = relationship()


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))


class Library:
    """A library, whose populate() adds authors with two books each."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def populate(self, n: int) -> None:
        known = self._session.scalar(select(func.count(Author.id))) or 0
        self._session.add_all(Author(books=[Book(), Book()]) for _ in range(known, n))
        self._session.commit()

    def lazily(self) -> None:
        self._session.expire_all()
        for author in self._session.scalars(select(Author)).all():
            len(author.books)

    def in_two_queries(self) -> None:
        self._session.expire_all()
        query = select(Author).options(selectinload(Author.books))
        assert all(author.books for author in self._session.scalars(query))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        yield Library(session)
    engine.dispose()


def test_a_lazy_load_without_an_index_is_a_square(library: Library) -> None:
    with pytest.raises(AssertionError) as error:
        queryprof.check_growth(library.populate, library.lazily)
    text = str(error.value)
    assert "VM steps grow with the square of n (exponent 2.00)" in text
    assert "it runs once per row of SELECT author.id" in text
    assert "len(author.books)" in text


def test_two_queries_are_in_proportion(library: Library) -> None:
    queryprof.check_growth(library.populate, library.in_two_queries)
    with pytest.raises(AssertionError, match="VM steps grow in proportion to"):
        queryprof.check_growth(library.populate, library.in_two_queries, 0, (170, 200, 300, 400))


DJANGO = """
import unittest
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["app"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.core.management import call_command
from app.models import Author, Book
import django.test
import queryprof

class Tests(queryprof.TestCase, django.test.TestCase):
    def populate(self, authors, books):
        for _ in range(Author.objects.count(), authors):
            Author.objects.create()
        first = Author.objects.first()
        for _ in range(Book.objects.count(), books):
            Book.objects.create(author=first)

    def test_count_for_each(self):
        self.assertGrowth(self.populate, lambda: [one.book_set.count() for one in Author.objects.all()])

    def test_titles_of_the_first(self):
        self.assertGrowth(self.populate, lambda: list(Author.objects.first().book_set.all()), 0)

    def test_the_first(self):
        self.assertGrowth(self.populate, lambda: Author.objects.first(), 0)

call_command("test", "__main__", verbosity=1)
"""
MODELS = """
from django.db import models
class Author(models.Model):
    pass
class Book(models.Model):
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
"""


def test_a_django_test_case(tmp_path: Path) -> None:
    """A foreign key of Django has an index: a count for each author grows with both tables, and in
    proportion to each. The books of one author grow with the books.
    """
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("")
    (tmp_path / "app" / "models.py").write_text(MODELS)
    (tmp_path / "tests.py").write_text(DJANGO)
    done = subprocess.run(
        [sys.executable, "tests.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "FAILED (failures=1)" in done.stderr, done.stderr
    assert "FAIL: test_titles_of_the_first" in done.stderr
    assert "VM steps grow in proportion to app_book (exponent 1.00)" in done.stderr
    assert "(only the number for books was increased)" in done.stderr
