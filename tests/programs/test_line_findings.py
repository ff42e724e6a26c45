"""Findings that need the time of the program's line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python 3.11 reports no lines of one function"
)

FOLDER = Path(__file__).parent / "findings"

Run = Callable[..., CompletedProcess[str]]


def recorded(queryprof: Run, program: Path) -> tuple[Finding, ...]:
    result = queryprof("run", "--no-report", "-o", "t.qprof", program)
    assert result.returncode == 0, result.stderr
    return findings_of(Report(read_profile("t.qprof")))


def test_objects_of_many_rows(queryprof: Run) -> None:
    program = FOLDER / "many_objects.py"
    (culprit,) = [
        number
        for number, line in enumerate(program.read_text().splitlines(), 1)
        if "# culprit" in line
    ]
    found = recorded(queryprof, program)
    assert found[0].category == "many_objects"
    assert found[0].site.frame is not None
    assert found[0].site.frame.line == culprit
    assert recorded(queryprof, FOLDER / "many_objects_healthy.py") == ()


EXPIRING = """
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

engine = create_engine("sqlite://")


class Base(DeclarativeBase):
    pass


class Node(Base):
    __tablename__ = "node"
    id: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str]


Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all([Node(label="x") for _ in range(600)])
    session.commit()
with Session(engine) as session:
    for node in session.scalars(select(Node)).all():
        node.label += "y"
        session.commit()
"""


@pytest.mark.slow
def test_a_commit_for_each_of_many_objects(queryprof: Run, tmp_path: Path) -> None:
    """Each commit expires all objects: the driver takes a hundredth of the time of the commit's
    line.
    """
    (tmp_path / "app.py").write_text(EXPIRING)
    found = recorded(queryprof, tmp_path / "app.py")
    assert found[0].category == "commit_per_write"
    assert "expire_on_commit" in found[0].fix
    (others_ns,) = [one.gain_ns for one in found if one.category == "n_plus_one"] or [0]
    assert found[0].gain_ns > others_ns


COUNTED = """
from jinja2 import Template
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

engine = create_engine("sqlite://")


class Base(DeclarativeBase):
    pass


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]


def joined(books):
    return ",".join(book.title for book in books)


page = Template("{{ joined(books) }}")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all([Book(title=f"title {number}") for number in range(3000)])
    session.commit()
for _ in range(5):
    with Session(engine) as session:
        print(len(BOOKS))
"""


@pytest.mark.parametrize(
    ("books", "counts"),
    [
        ("session.query(Book).order_by(Book.title).all()", True),
        ("page.render(books=session.query(Book).order_by(Book.title), joined=joined)", False),
        ("joined(session.query(Book).order_by(Book.title).all())", False),
    ],
)
def test_a_page_of_rows_is_no_count_of_rows(
    queryprof: Run, tmp_path: Path, books: str, counts: bool
) -> None:
    """Only the length of the query's list is the number of its rows."""
    program = tmp_path / "program.py"
    program.write_text(COUNTED.replace("BOOKS", books))
    found = [one for one in recorded(queryprof, program) if "ORDER BY" in one.statement]
    assert ["only counts the rows" in one.fix for one in found] == [counts]
