"""Find the tables that a program's classes name for an object mapper."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from queryprof.program.source_loops import parse_source

NAMES = frozenset({"__tablename__", "_table_", "db_table", "table_name", "table"})
"""Attributes of a class, or of its class Meta, that hold the table's name: SQLAlchemy, Pony,
Django, peewee and Tortoise.
"""


@cache
def tables_of_classes(text: str) -> Mapping[str, str]:
    """Return the table of each class in a source, for classes that name exactly one table."""
    tree = parse_source(text) if any(name in text for name in NAMES) else None  # parsing is slow
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.name != "Meta":
            found[node.name].update(_named_tables(node))
    return {name: tables.pop() for name, tables in found.items() if len(tables) == 1}


def _named_tables(node: ast.ClassDef) -> Iterator[str]:
    """Yield the literal values of the class's attributes that name its table."""
    for one in node.body:
        if isinstance(one, ast.ClassDef) and one.name == "Meta":
            yield from _named_tables(one)
        elif isinstance(one, ast.Assign | ast.AnnAssign) and isinstance(one.value, ast.Constant):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            names = {getattr(target, "id", "") for target in targets}
            if names & NAMES and isinstance(one.value.value, str):
                yield one.value.value
