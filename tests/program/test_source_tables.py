"""The tables that classes name for an object mapper are found in the source."""

from __future__ import annotations

import pytest

from queryprof.program.source_tables import tables_of_classes
from queryprof.program.sources import Sources


@pytest.mark.parametrize(
    ("body", "table"),
    [
        ("    __tablename__ = 'trace_info'\n", "trace_info"),
        ("    __tablename__: str = 'trace_info'\n", "trace_info"),
        ("    _table_ = 'trace_info'\n", "trace_info"),
        ("    class Meta:\n        db_table = 'trace_info'\n", "trace_info"),
        ("    class Meta:\n        table_name = 'trace_info'\n", "trace_info"),
        ("    class Meta:\n        table = 'trace_info'\n", "trace_info"),
        ("    class Meta:\n        ordering = ['table']\n", ""),
        ("    __tablename__ = name_of('trace')\n", ""),
        ("    class Other:\n        table_name = 'trace_info'\n", ""),
        ("    this is not Python\n", ""),
    ],
)
def test_names_of_tables(body: str, table: str) -> None:
    assert tables_of_classes(f"class Trace(Base):\n{body}").get("Trace", "") == table


def test_a_class_is_looked_up_in_all_sources() -> None:
    text = "class Trace(Base):\n    __tablename__ = 'trace_info'\n"
    found = Sources({}, {"/tmp/a.py": ("import b", "import b"), "/tmp/b.py": (text, text)})
    assert (found.table_of_class("Trace"), found.table_of_class("Tag")) == ("trace_info", "")
    assert [found.declares_table(one) for one in ("Trace_Info", "Trace", "")] == [
        True,
        False,
        False,
    ]


def test_classes_with_the_same_name_and_several_tables() -> None:
    texts = [f"class Trace(Base):\n    __tablename__ = '{name}'\n" for name in ("a", "b")]
    assert tables_of_classes("".join(texts)) == {}
    found = Sources({}, {f"/tmp/{at}.py": (one, one) for at, one in enumerate(texts)})
    assert found.table_of_class("Trace") == ""
