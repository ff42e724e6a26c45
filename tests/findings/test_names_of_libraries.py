"""Names of classes, tables and columns in the advice for object mappers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.library_frames import package_that_executes
from queryprof.analysis.report import Report
from queryprof.findings.libraries import (
    MANY_AT_ONCE,
    is_table_of_class,
    with_compared_column,
)
from queryprof.findings.program import Program
from queryprof.findings.source_lines import UnknownSourceLines
from queryprof.model import Frame, StackSample

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("table", "name", "expected"),
    [
        ("trials", "Trial", True),
        ("trials", "TrialModel", True),
        ("shop_category", "CategoryEntity", True),
        ("users", "UserProfile", False),
        ("model", "Model", True),
        ("users", "Model", False),  # nothing remains without the suffix
        ("users", "", False),
    ],
)
def test_tables_of_classes(table: str, name: str, expected: bool) -> None:
    assert is_table_of_class(table, name) == expected


@pytest.mark.parametrize(
    ("library", "condition", "expected"),
    [
        ("sqlalchemy", "t.value = ?", "Model.value.in_("),
        ("sqlalchemy", "t.value = ? AND t.kind = ?", "Model.id.in_("),
        ("sqlalchemy", "t.value > ?", "Model.id.in_("),
        ("sqlalchemy", "lower(t.value) = ?", "Model.id.in_("),
        ("peewee", '("t"."value" = ?)', "Model.value.in_("),
        ("django", '"t"."value" = ?', "value__in="),
        ("pony", '"t"."value" = ?', "e.value in ids"),
    ],
)
def test_the_compared_column_is_in_the_advice(library: str, condition: str, expected: str) -> None:
    statement = f"SELECT a FROM t WHERE {condition} LIMIT ?"
    assert expected in with_compared_column(MANY_AT_ONCE[library], statement)


def stack(*calls: str, kind: str = "user") -> list[Frame]:
    """Return a stack, inner frames first, from calls such as "optuna.storage.get"."""
    frames = []
    for call in calls:
        package, _, function = call.partition(".")
        frames.append(Frame(function, f"/venv/site-packages/{package}/x.py", 1, "library"))
    return [*frames, Frame("main", "/app/main.py", 1, kind)]


SESSION = ("sqlalchemy.DefaultDialect.do_execute", "sqlalchemy.Session.execute")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (SESSION, "sqlalchemy"),
        ((*SESSION, "optuna.Storage.get_trial"), "optuna"),
        ((*SESSION, "optuna.Storage.get_trial", "sqlalchemy.Session.begin"), "sqlalchemy"),
        ((*SESSION, "sqlmodel.Session.exec"), "sqlalchemy"),
        ((*SESSION, "flask_sqlalchemy.Pagination"), "sqlalchemy"),
        ((*SESSION, "sqlmodel.Session.exec", "optuna.Storage.get_trial"), "optuna"),
        ((*SESSION, "pandas.read_sql"), "sqlalchemy"),
        ((*SESSION, "sqlalchemy.Query.__iter__", "tqdm.tqdm.__iter__"), "sqlalchemy"),
        ((*SESSION, "sqlalchemy.Attribute.__get__", "marshmallow.dump"), "sqlalchemy"),
        (("django.QuerySet.get", "taggit.Manager.add"), "taggit"),
        (("django.Model.save", "mptt.MPTTModel.save", "django.Manager.create"), "django"),
        (("sqlite3.execute", "beets.Library.add"), "beets"),
        (("dataset.Table.find",), "dataset"),
        ((), ""),
    ],
)
def test_the_package_that_executes(calls: tuple[str, ...], expected: str) -> None:
    assert package_that_executes(stack(*calls)) == expected


def test_without_a_frame_of_the_program_the_caller_is_unknown() -> None:
    """For example, a framework serializes the objects of a query."""
    calls = stack(*SESSION, "fastapi.serialize", kind="library")
    assert package_that_executes(calls) == "sqlalchemy"


class Declares(UnknownSourceLines):
    """Source whose classes name the table `item`."""

    def declares_table(self, table: str) -> bool:
        return table == "item"


@pytest.mark.parametrize(
    ("statement", "library"),
    [
        ("SELECT a FROM item WHERE b = ?", "sqlalchemy"),
        ("INSERT INTO item(a) VALUES (?)", "sqlalchemy"),
        ("SELECT a FROM trial WHERE b = ?", "optuna"),
        ("INSERT INTO trial(a) SELECT b FROM item", "optuna"),
    ],
)
def test_a_package_that_passes_on_the_program_s_models(statement: str, library: str) -> None:
    """Such as a paginator, which executes the program's query."""
    calls = stack(*SESSION, "optuna.storage.get")
    one = profile_of(aggregate(statement, (MAIN,)))
    one = replace(one, stack_samples=(StackSample(statement, tuple(calls), 1, 1),))
    program = Program(Report(one), lambda *_: None, {}, lines=Declares())
    assert program.library(statement) == library
