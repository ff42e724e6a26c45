"""Names of classes, tables and columns in the advice for object mappers."""

from __future__ import annotations

import pytest

from queryprof.findings.libraries import (
    MANY_AT_ONCE,
    is_table_of_class,
    with_compared_column,
)

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
