"""The place where a template or a serializer reads an attribute that an object mapper loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings.libraries import SEVERAL, preload_advice
from queryprof.findings.program import Program

pytestmark = pytest.mark.once

DJANGO = """
import sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"], USE_TZ=True,
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": ["templates"]}],
)
django.setup()
from django.db import connection, models
from django.template.loader import render_to_string

class Author(models.Model):
    name = models.TextField()
    class Meta:
        app_label = "auth"

class Book(models.Model):
    title = models.TextField()
    author = models.ForeignKey(Author, models.CASCADE)
    class Meta:
        app_label = "auth"

class Tag(models.Model):
    name = models.TextField()
    books = models.ManyToManyField(Book)
    class Meta:
        app_label = "auth"

class Profile(models.Model):
    text = models.TextField()
    author = models.OneToOneField(Author, models.CASCADE)
    class Meta:
        app_label = "auth"

with connection.schema_editor() as editor:
    editor.create_model(Author)
    editor.create_model(Book)
    editor.create_model(Tag)
    editor.create_model(Profile)
for number in range(30):
    author = Author.objects.create(name=f"author {number}")
    Book.objects.create(title="a", author=author)
    Book.objects.create(title="b", author=author)
"""
PAGE = "<ul>\n{% for book in books %}\n<li>{{ book.title }}\n  by {{ book.author.name }}\n{% endfor %}</ul>"
AUTHORS = "{% for author in authors %}\n{% for book in author.book_set.all %}{{ book.title }}{% endfor %}{% endfor %}"

TEMPLATES = (
    DJANGO
    + """
print(len(render_to_string("books.html", {"books": Book.objects.all()})))
print(len(render_to_string("authors.html", {"authors": Author.objects.all()})))
"""
)
RELATIONS = (
    DJANGO
    + """
for number, author in enumerate(Author.objects.all()):
    Profile.objects.create(text="long", author=author)
    Tag.objects.create(name="tag").books.set(author.book_set.order_by("id"))
for author in Author.objects.all():
    print(author.profile.text)
for tag in Tag.objects.all():
    print([book.title for book in tag.books.all()], tag.books.count(), tag.books.first().title)
for book in Book.objects.all():
    print([tag.name for tag in book.tag_set.all()], [tag.name for tag in book.tag_set.order_by("name")])
for profile in Profile.objects.only("id"):
    print(profile.text)
for profile in Profile.objects.all():
    profile.refresh_from_db(fields=["text"])
for author in Author.objects.prefetch_related("profile"):
    print(author.profile.text)
for tag in Tag.objects.prefetch_related("books"):
    print([book.title for book in tag.books.all()])
"""
)
SHARED = (
    DJANGO
    + """
class Review(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    class Meta:
        app_label = "auth"
with connection.schema_editor() as editor:
    editor.create_model(Review)
for author in Author.objects.all():
    Review.objects.create(author=author)
def names():
    return [review.author.name for review in Review.objects.all()]
print([book.author.name for book in Book.objects.all()])
print([names() for _ in range(20)][-1])
"""
)
SERIALIZERS = (
    DJANGO
    + """
from rest_framework import serializers
class BookSerializer(serializers.ModelSerializer):
    by = serializers.CharField(source="author.name")
    class Meta:
        model = Book
        fields = ["title", "by"]
print(len(BookSerializer(Book.objects.all(), many=True).data))
"""
)
FLASK = """
import jinja2, sqlalchemy as sa
from sqlalchemy import orm
class Base(orm.DeclarativeBase):
    pass
class Author(Base):
    __tablename__ = "author"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.Text)
class Book(Base):
    __tablename__ = "book"
    id = sa.Column(sa.Integer, primary_key=True)
    author_id = sa.Column(sa.ForeignKey("author.id"))
    author = orm.relationship(Author)
engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
Base.metadata.create_all(engine)
with orm.Session(engine) as session:
    session.add_all([Book(author=Author(name=str(n))) for n in range(30)])
    session.commit()
environment = jinja2.Environment(loader=jinja2.FileSystemLoader("templates"))
with orm.Session(engine) as session:
    books = session.scalars(sa.select(Book)).all()
    print(len(environment.get_template("jinja.html").render(books=books)))
"""
JINJA = "<ul>\n{% for book in books %}\n<li>\n  by {{ book.author.name }}\n{% endfor %}</ul>"


def notes(tmp_path: Path, program: str) -> list[str]:
    (tmp_path / "templates").mkdir()
    for name, text in (("books", PAGE), ("authors", AUTHORS), ("jinja", JINJA)):
        (tmp_path / "templates" / f"{name}.html").write_text(text)
    (tmp_path / "app.py").write_text(program)
    bare = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True, check=True)
    command = [sys.executable, "-m", "queryprof", "run", "--no-report", "-o", "t.qprof", "app.py"]
    recorded = subprocess.run(command, capture_output=True, text=True, check=True)
    assert recorded.stdout == bare.stdout
    return sorted(read_profile("t.qprof").notes.values())


def test_django_s_templates(tmp_path: Path) -> None:
    """The line reads the attribute, or iterates over the objects that refer to one."""
    pytest.importorskip("django")
    assert notes(tmp_path, TEMPLATES) == [
        "lazy load of Book.author in template books.html:4",
        "lazy load of all Author.book_set in template authors.html:2",
    ]


@pytest.mark.slow
def test_django_s_other_relations(tmp_path: Path) -> None:
    """They are one-to-one, many-to-many from both sides, and deferred columns."""
    pytest.importorskip("django")
    assert notes(tmp_path, RELATIONS) == [
        "lazy load of Author.profile",
        "lazy load of all Book.tag_set",
        "lazy load of all Tag.books",
        "lazy load of column Profile.text",
    ]


@pytest.mark.slow
def test_relations_that_share_a_statement(tmp_path: Path) -> None:
    """The relation that a call site loads is unknown, so none is shown."""
    pytest.importorskip("django")
    assert notes(tmp_path, SHARED) == [SEVERAL]
    program = Program(Report(read_profile("t.qprof")), lambda *_: None, {})
    shared = [one for one in program.all_groups if one.statement in program.profile.notes]
    assert len(shared) == 2
    assert [program.library_note(one) for one in shared] == [None, None]


@pytest.mark.slow
def test_serializers_of_the_rest_framework(tmp_path: Path) -> None:
    pytest.importorskip("rest_framework")
    assert notes(tmp_path, SERIALIZERS) == [
        "lazy load of Book.author in serializer BookSerializer.by"
    ]


@pytest.mark.slow
def test_jinja_s_templates(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    assert notes(tmp_path, FLASK) == ["lazy load of Book.author in template jinja.html:4"]


@pytest.mark.parametrize(
    ("library", "note", "words", "place"),
    [
        (
            "django",
            "lazy load of Book.author in template books.html:4",
            'Load Book.author with the parent query: `.select_related("author")`.',
            " template books.html:4 reads it.",
        ),
        (
            "django",
            "lazy load of all Author.book_set",
            'Load Author.book_set with the parent query: `.prefetch_related("book_set")`.',
            "",
        ),
        (
            "django",
            "lazy load of column Book.text",
            "Load Book.text with the parent query: list it in `.only()`, or remove it from `.defer()`.",
            "",
        ),
        (
            "sqlalchemy",
            "lazy load of Order.lines in template o.html:1",
            "Load Order.lines with the parent query: `.options(selectinload(Order.lines))`, or `joinedload()`.",
            " template o.html:1 reads it.",
        ),
    ],
)
def test_the_fix_names_the_place(library: str, note: str, words: str, place: str) -> None:
    assert preload_advice(library, note) == words + place


CALLED = """
import sqlite3, sys
import jinja2
connection = sqlite3.connect(":memory:")
environment = jinja2.Environment(loader=jinja2.FileSystemLoader("templates"))
query = lambda number: connection.execute("SELECT ?", (number,)).fetchone()[0]
print(environment.get_template("jinja.html").render(query=query, numbers=range(40)))
"""


def test_a_function_that_a_template_calls(tmp_path: Path) -> None:
    """Its line is the template's, not a line of the code that Jinja generates."""
    pytest.importorskip("jinja2")
    (tmp_path / "templates").mkdir()
    text = "{% macro show(n) %}\n  {{ query(n) }}\n{% endmacro %}\n\n{% for n in numbers %}\n{{ show(n) }}{% endfor %}"
    (tmp_path / "templates" / "jinja.html").write_text(text)
    (tmp_path / "app.py").write_text(CALLED)
    command = [sys.executable, "-m", "queryprof", "run", "--no-report", "-o", "t.qprof", "app.py"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    profile = read_profile("t.qprof")
    (path,) = {one.path for one in profile.aggregates if one.statement == "SELECT ?"}
    lines = [frame.line for frame in path if frame.file.endswith("jinja.html")]
    assert lines == [2, 6]


HOSTILE = """
import sqlite3
connection = sqlite3.connect(":memory:")
met = []
class Key:
    def __hash__(self):
        return hash(NAME)
    def __eq__(self, other):
        met.append(other)
        made.pop("debug_info", None)
        return other == NAME
INFOS = ("-1=1", "4294967295=1", "9" * 23 + "=1", "verbose", "", "1=", "=1", "1=1&", "2=1&x", "\u00e4=1", "1:7")
for number, info in enumerate(INFOS):
    code = compile("\\n\\nconnection.execute('SELECT 1').fetchall()", f"page{number}.html", "exec")
    exec(code, {"connection": connection, "debug_info": info, "blocks": {}})
for NAME in ("blocks", "debug_info", "__name__"):
    code = compile("\\n\\nconnection.execute('SELECT 1').fetchall()", f"{NAME}.html", "exec")
    made = {"connection": connection, "debug_info": "1=1", Key(): {}}
    before = len(met)
    exec(code, made)
print(len(met))
"""


def test_globals_that_are_no_template_s(tmp_path: Path) -> None:
    """Their lines are those of the code, or lines of some file. No code of the program
    runs for it.
    """
    (tmp_path / "app.py").write_text(HOSTILE)
    bare = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True, check=True)
    command = [sys.executable, "-m", "queryprof", "run", "--no-report", "-o", "t.qprof", "app.py"]
    recorded = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, "")
    profile = read_profile("t.qprof")
    frames = {one.path[0] for one in profile.aggregates if one.path[0].file.endswith(".html")}
    lines = {Path(frame.file).stem: frame.line for frame in frames}
    assert lines == {
        **{f"page{number}": 3 for number in range(11)},
        "page7": 1,
        "page8": 2,
        "blocks": 3,
        "debug_info": 3,
        "__name__": 3,
    }
