"""Values for the parameters of statements: recorded, or drawn from the database."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from queryprof.sql.tokens import parameters_in

Values = tuple[object, ...] | dict[str, object]


def placeholders(sql: str) -> list[str]:
    """Return the placeholders of a statement in order: ?, ?3, :name, @name, $name."""
    return [sql[start:end] for start, end in parameters_in(sql)]


def replace_placeholders(sql: str, values: Sequence[str]) -> str:
    """Replace the placeholders of a statement, in order, by these SQL texts."""
    parts, place = [], 0
    for (start, end), value in zip(parameters_in(sql), values, strict=True):
        parts += [sql[place:start], value]
        place = end
    return "".join([*parts, sql[place:]])


def name_all_placeholders(statement: str) -> str:
    """Name all placeholders of a statement if some have names, because recorded texts also have ?
    in place of literals.
    """
    names = placeholders(statement)
    if not any(name[0] in ":@$" for name in names):
        return statement
    named = [
        f":queryprof_{place}" if name.startswith("?") else name for place, name in enumerate(names)
    ]
    return replace_placeholders(statement, named)


def null_values(statement: str) -> Mapping[str, None] | tuple[None, ...]:
    """Return NULL for each placeholder. The plan does not depend on these values."""
    names = placeholders(statement)
    named = {name[1:]: None for name in names if name[0] in ":@$"}
    return named or (None,) * len(names)


def recorded_values(sql: str, shown: str | None) -> Values | None:
    """Parse the recorded parameter values of an execution; None if a value is unknown.

    Args:
        shown: the recorded text: the repr of each value, with `name=` in front of named values.
    """
    wanted = placeholders(sql)
    if not wanted:
        return () if not shown else None
    try:
        call = ast.parse(f"f({shown or ''})", mode="eval").body
        assert isinstance(call, ast.Call)
        plain = tuple(ast.literal_eval(one) for one in call.args)
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}
    except (SyntaxError, ValueError, AssertionError, MemoryError, RecursionError):
        return None
    if named and not plain and {name[1:] for name in wanted} <= set(named):
        return named
    names = set(wanted)
    needed = len(wanted) if names == {"?"} else len(names)
    return plain if not named and len(plain) == needed else None
