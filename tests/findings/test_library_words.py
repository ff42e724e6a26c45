"""Advice uses the terms of the library that runs the statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.amounts import MULTIPLIED
from queryprof.findings.find import find_all
from queryprof.findings.library_calls import grouped_aggregate_advice, subclass_columns_advice
from queryprof.model import Frame, LineTime, StackSample

pytestmark = pytest.mark.once

MS = 1_000_000
MAPPER = Frame("Session.scalars", "/venv/site-packages/sqlalchemy/orm/session.py", 1, "library")


@pytest.mark.parametrize(
    ("library", "function", "words"),
    [
        ("django", "count", '.annotate(value=Count("relation"))'),
        ("django", "sum", '.annotate(value=Sum("relation__field"))'),
        ("sqlalchemy", "count", "func.count())"),
        ("sqlalchemy", "max", "func.max(Model.column))"),
        ("peewee", "avg", "fn.AVG(Model.column))"),
        ("pony", "sum", "sum(e.attribute))"),
        ("sqlite3", "sum", ""),
    ],
)
def test_the_function_is_that_of_the_statement(library: str, function: str, words: str) -> None:
    found = grouped_aggregate_advice(library, function)
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(("joins", "is_reported"), [(2, True), (1, False)])
def test_collections_that_are_joined_multiply(joins: int, is_reported: bool) -> None:
    joined = "".join(f" LEFT OUTER JOIN c{n} ON c{n}.a = a.id" for n in range(joins))
    sql = f"SELECT a.id, a.b FROM a{joined} WHERE a.id = ?"
    one = aggregate(sql, (QUERY, MAIN), ns=50 * MS, count=20)._replace(rows=20 * 1200)
    line = LineTime(sql, (QUERY, MAIN), 20, 20, 0, 400 * MS)
    stack = StackSample(sql, (MAPPER, QUERY, MAIN), 20, 50 * MS)
    profile = replace(profile_of(one), line_times=(line,), stack_samples=(stack,))
    (found,) = find_all(Report(profile), lambda *_: None, {})
    assert found.category == "many_objects"
    assert found.fix.startswith(MULTIPLIED) == is_reported


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("Session.refresh", "Leave out `refresh()`"),
        ("InstanceState._load_expired", "expire_on_commit=False"),
        ("Session.merge", "on_conflict_do_update"),
        ("Session.get", "selectinload(Model.relation)"),
    ],
)
def test_what_loads_an_object_again(function: str, words: str) -> None:
    sql = "SELECT a FROM job WHERE job.id = ?"
    parent = aggregate("SELECT a FROM job", (MAIN,), ns=MS, count=1)._replace(rows=100)
    one = aggregate(sql, (QUERY, MAIN), ns=300 * MS, count=100)._replace(rows=100)
    stack = StackSample(sql, (replace(MAPPER, function=function), QUERY, MAIN), 20, 50 * MS)
    profile = replace(profile_of(parent, one), stack_samples=(stack,))
    found = {each.statement: each for each in find_all(Report(profile), lambda *_: None, {})}[sql]
    assert found.category == "n_plus_one"
    assert words in found.fix


def test_columns_of_a_subclass_are_not_expired() -> None:
    """SQLAlchemy reads them by the subclass's own key, with the parameter on the left."""
    assert "selectin_polymorphic" in subclass_columns_advice(
        "sqlalchemy", "SELECT lamp.level FROM lamp WHERE ? = lamp.id"
    )
    assert not subclass_columns_advice("sqlalchemy", "SELECT a FROM lamp WHERE lamp.id = ?")
    assert not subclass_columns_advice("", "SELECT lamp.level FROM lamp WHERE ? = lamp.id")


@pytest.mark.parametrize("has_handler", [True, False])
def test_signal_handlers_of_a_save_are_mentioned(has_handler: bool) -> None:
    """A signal handler runs on save(), but not when many rows are inserted at once."""
    django = Frame("Model.save", "/venv/site-packages/django/db/models/base.py", 1, "library")
    insert, total = "INSERT INTO line VALUES (?)", "SELECT sum(a) FROM line WHERE b = ?"
    handler = Frame("refresh_total", "/app/signals.py", 7)
    one = aggregate(insert, (QUERY, MAIN), ns=100 * MS, count=100)._replace(rows=100)
    path = (handler, QUERY, MAIN) if has_handler else (handler, MAIN)
    other = aggregate(total, path, ns=100 * MS, count=100)._replace(rows=100)
    stack = StackSample(insert, (django, QUERY, MAIN), 20, 50 * MS)
    profile = replace(profile_of(one, other), stack_samples=(stack,))
    found = find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})
    (inserts,) = (each for each in found if each.category == "single_inserts")
    assert ("also calls refresh_total(): do this once" in inserts.fix) == has_handler


@pytest.mark.parametrize(("package", "is_doubtful"), [("mptt", True), ("django", False)])
def test_a_package_that_overrides_save(package: str, is_doubtful: bool) -> None:
    insert = "INSERT INTO line VALUES (?)"
    frames = [
        Frame(name, f"/venv/site-packages/{of}/models.py", 1, "library")
        for of, name in (
            ("django", "Model.save"),
            (package, "TreeModel.save"),
            ("django", "QuerySet.create"),
        )
    ]
    one = aggregate(insert, (QUERY, MAIN), ns=100 * MS, count=100)._replace(rows=100)
    stack = StackSample(insert, (*frames, QUERY, MAIN), 20, 50 * MS)
    profile = replace(profile_of(one), stack_samples=(stack,))
    (found,) = find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})
    assert found.category == "single_inserts"
    assert found.doubt.startswith("The save() of mptt also runs") == is_doubtful


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("tree = ? AND lft <= ? AND rght >= ?", "the conditions combined with OR"),
        ("tree = ?", "prefetch_related"),
    ],
)
def test_a_query_of_ranges_has_no_relation(condition: str, words: str) -> None:
    parent, child = "SELECT id FROM product", f"SELECT name FROM category WHERE {condition}"
    one = aggregate(child, (QUERY, MAIN), ns=400 * MS, count=700)._replace(rows=700)
    two = aggregate(parent, (MAIN,), ns=5 * MS, count=1)._replace(rows=700)
    django = Frame("QuerySet.__iter__", "/venv/site-packages/django/db/query.py", 1, "library")
    stack = StackSample(child, (django, QUERY, MAIN), 20, 50 * MS)
    profile = replace(profile_of(one, two), stack_samples=(stack,))
    found = find_all(Report(profile), lambda *_: None, {})
    (repeated,) = (each for each in found if each.statement == child)
    assert words in repeated.fix


def test_a_template_that_loads_an_attribute_of_each_object_is_an_n_plus_one() -> None:
    """The loop is in the template, and some objects have the same author: no counts are equal."""
    books, author = "SELECT id FROM book", "SELECT name FROM author WHERE id = ?"
    one = aggregate(author, (QUERY, MAIN), ns=400 * MS, count=700)._replace(rows=700)
    two = aggregate(books, (MAIN,), ns=5 * MS, count=1)._replace(rows=800)
    profile = replace(
        profile_of(one, two), notes={author: "lazy load of Book.author in template page.html:3"}
    )
    found = find_all(Report(profile), lambda *_: None, {})
    assert [each.category for each in found if each.statement == author] == ["n_plus_one"]
    assert not found[0].doubt
