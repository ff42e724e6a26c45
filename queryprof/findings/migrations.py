"""Write an index as a migration of Django, or of Alembic for SQLAlchemy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from queryprof.sql.tokens import Token, tokens_of


class _Column(NamedTuple):
    """A column: its name, and the name as written in SQL."""

    name: str
    sql: str
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class _Index:
    """The parts of a CREATE INDEX.

    Attributes:
        name: "" if the database chooses the name.
        columns: None if the index contains more than columns.
    """

    sql: str
    name: str
    table: str
    columns: tuple[_Column, ...] | None
    is_concurrent: bool


def migration_of(library: str, code: str) -> str:
    """Return lines of Python that create the indexes in the SQL; "" if WRITERS lacks the
    library.
    """
    write = WRITERS.get(library)
    if write is None or not code.startswith("CREATE INDEX "):
        return ""
    return "\n".join(line for index in _parse_indexes(code) for line in write(index))


def _parse_indexes(code: str) -> Iterator[_Index]:
    tokens: list[Token] = []
    for token in tokens_of(code):
        if token.text != ";" or token.depth:
            tokens.append(token)
            continue
        if index := _parse_index(code[tokens[0].start : token.start], tokens):
            yield index
        tokens = []


def _parse_index(sql: str, tokens: Sequence[Token]) -> _Index | None:
    keywords = [token.keyword for token in tokens]
    if keywords[:2] != ["CREATE", "INDEX"] or "ON" not in keywords:
        return None
    on = keywords.index("ON")
    before = [token for token in tokens[2:on] if token.keyword != "CONCURRENTLY"]
    table = tokens[on + 1]
    is_whole = len(before) <= 1 and tokens[on + 2].text == "(" and tokens[-1].text == ")"
    return _Index(
        sql,
        _unquoted_name(before[-1]) if before else "",
        _unquoted_name(table),
        _parse_columns(tokens[on + 3 : -1]) if is_whole else None,
        "CONCURRENTLY" in keywords[:on],
    )


def _parse_columns(tokens: Sequence[Token]) -> tuple[_Column, ...] | None:
    """Return the columns between the parentheses; None if there is an expression or a collation."""
    found: list[_Column] = []
    for token in tokens:
        if token.keyword == "DESC" and found:
            found[-1] = found[-1]._replace(is_descending=True)
        elif token.text != "," and token.kind in ("word", "name"):
            found.append(_Column(_unquoted_name(token), token.text))
        elif token.text != ",":
            return None
    commas = sum(token.text == "," for token in tokens)
    return tuple(found) if len(found) == commas + 1 else None


def _unquoted_name(token: Token) -> str:
    """Return a name without its quotes."""
    return token.text[1:-1].replace('""', '"') if token.kind == "name" else token.text


def _django_migration(index: _Index) -> Iterator[str]:
    if index.columns is None:
        undone = f", {json.dumps(f'DROP INDEX {index.name}')}" if index.name else ""
        yield f"Django: migrations.RunSQL({json.dumps(index.sql)}{undone})"
    else:
        fields = ", ".join(json.dumps("-" * one.is_descending + one.name) for one in index.columns)
        operation = "AddIndexConcurrently" if index.is_concurrent else "AddIndex"
        yield (
            f"Django: models.Index(fields=[{fields}]) in Meta.indexes of the model of"
            f" {index.table}, and the operation {operation} (manage.py makemigrations)"
        )
    if index.is_concurrent:
        yield "with `atomic = False` in the migration"


def _alembic_migration(index: _Index) -> Iterator[str]:
    within = "with op.get_context().autocommit_block(): " if index.is_concurrent else ""
    if index.columns is None:
        yield f"Alembic: {within}op.execute({_sqlalchemy_text(index.sql)})"
        return
    columns = [
        f"sa.text({_sqlalchemy_text(f'{one.sql} DESC')})"
        if one.is_descending
        else json.dumps(one.name)
        for one in index.columns
    ]
    name = index.name or "_".join([index.table, *(one.name for one in index.columns), "idx"])
    given = f"{json.dumps(name)}, {json.dumps(index.table)}, [{', '.join(columns)}]"
    how = ", postgresql_concurrently=True" if index.is_concurrent else ""
    yield f"Alembic: {within}op.create_index({given}{how})"
    listed = ", ".join([json.dumps(name), *columns])
    yield f"and in __table_args__ of the model of {index.table}: Index({listed})"


def _sqlalchemy_text(sql: str) -> str:
    """Return SQL for SQLAlchemy's text(), which treats a colon as the start of a parameter."""
    return json.dumps(sql.replace(":", r"\:"))


WRITERS: dict[str, Callable[[_Index], Iterator[str]]] = {
    "django": _django_migration,
    "sqlalchemy": _alembic_migration,
    "sqlmodel": _alembic_migration,
}
