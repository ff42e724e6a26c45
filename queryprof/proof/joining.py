"""One JOIN instead of a query for each row of another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from queryprof.proof.parameters import Parameters, number_of
from queryprof.proof.rewriting import (
    Rewriting,
    Row,
    Rows,
    Text,
    Turn,
    parsed,
    plain_select,
    text_of,
)
from queryprof.proof.values import placeholders
from queryprof.proof.workload import Sample

MOST_ASKED = 10_000
"""Rows of an outer query in which the inner one's values are looked for."""


def join(
    outer: Sample, inners: Sequence[Sample], columns_of: Callable[[Text], list[str]], rows: Rows,
    most_rows: int,
) -> Iterator[Rewriting]:  # fmt: skip
    """One statement for a query and the one that is executed for each of its rows.

    Args:
        inners: of the one, with several sets of parameters.
        columns_of: the names of a query's columns.
        most_rows: of the outer query, for which the inner one is executed.
    """
    sql = outer.sql.strip().rstrip(";")
    few = f"SELECT * FROM ({sql}) LIMIT {most_rows}"
    around = rows(few, outer.values)
    names = columns_of((outer.sql, outer.values))
    if len(set(map(str.lower, names))) != len(names) or not around:
        return
    measured = replace(outer, sql=few if len(around) == most_rows else sql)
    # The recorded values may be of any of its rows, not of those alone that are measured.
    asked = rows(f"SELECT * FROM ({sql}) LIMIT {MOST_ASKED}", outer.values)
    for place, number in _keys(inners, names, asked):
        parts = _Joined(names, place, number)
        turn = parts.turn(measured, inners[0], around, rows)
        shown = parts.text(outer, inners[0])
        if turn and shown:
            how = (
                f"It has all rows: {names[number]} of the first query is in place of the parameter."
            )
            tree = parsed(sql)
            if tree is None or tree.args.get("order"):
                how += " Their order is not certain: add an ORDER BY."
            yield Rewriting(shown[0], how, (turn,))


def _keys(
    inners: Sequence[Sample], names: Sequence[str], asked: Sequence[Row]
) -> Iterator[tuple[int, int]]:
    """Which parameter is the value of which column: by their names, else by the recorded values. A
    value that is missing in `asked` says nothing where these are not all rows.
    """
    select = plain_select(Parameters().numbered(inners[0].sql, inners[0].values))
    where = select.args.get("where") if select else None
    if not select or not where:
        return
    compared = _compared(where)
    for place in range(len(placeholders(inners[0].sql))):
        if place not in compared:
            continue
        named = _named_as(compared[place], select.args["from_"].this.name, names)
        wanted = {_value(one, place) for one in inners if not one.is_drawn}
        having = [
            number for number in range(len(names)) if wanted <= {row[number] for row in asked}
        ]
        are_all = len(asked) < MOST_ASKED
        sure = [number for number in named if number in having] if wanted and are_all else []
        if sure or named:
            yield place, (sure or named)[0]
            return
        if len(wanted) > 1 and len(having) == 1:
            yield place, having[0]
            return


def _compared(where: exp.Expr) -> dict[int, str]:
    """By the number of a parameter the column that it is compared with."""
    found: dict[int, str] = {}
    for equal in where.find_all(exp.EQ):
        for one, other in ((equal.this, equal.expression), (equal.expression, equal.this)):
            if isinstance(one, exp.Column) and isinstance(other, exp.Placeholder):
                found.setdefault(number_of(text_of(other)), one.name)
    return found


def _named_as(column: str, table: str, names: Sequence[str]) -> list[int]:
    """The columns that are named as what a query looks for: as a reference to it, as itself, or as
    the key that it refers to.
    """
    wanted = [f"{table}_{column}".lower(), column.lower()]
    wanted += ["id"] if column.endswith(("_id", "Id")) else []
    lower = [name.lower() for name in names]
    return [lower.index(name) for name in wanted if name in lower]


@dataclass(frozen=True, slots=True)
class _Joined:
    """Two queries as one: the inner one's parameter at `place` is the outer one's column `number`."""

    names: Sequence[str]
    place: int
    number: int

    def text(self, outer: Sample, inner: Sample) -> Text | None:
        """The one statement; None: the inner query cannot be joined."""
        parameters = Parameters()
        first = parameters.numbered(outer.sql.strip().rstrip(";"), outer.values)
        before = parameters.count
        select = plain_select(parameters.numbered(inner.sql, inner.values))
        if not select or not select.args.get("where"):
            return None
        own = [f"outer_{''.join(c if c.isalnum() else '_' for c in name)}" for name in self.names]
        condition = select.args["where"].this
        for one in list(condition.find_all(exp.Placeholder)):
            if number_of(text_of(one)) == before + self.place:
                one.replace(exp.column(own[self.number], "outer_rows"))
        source = select.args["from_"].this
        table, on = text_of(source), text_of(condition)
        columns = ", ".join(text_of(one) for one in select.expressions)
        head = f"WITH outer_rows({', '.join(own)}) AS ({first}) SELECT outer_rows.*, "
        if not any(one.find(exp.AggFunc) for one in select.expressions):
            columns = f"{source.alias_or_name}.*" if select.is_star else columns
            return parameters.finished(f"{head}{columns} FROM outer_rows LEFT JOIN {table} ON {on}")
        if len(select.expressions) > 1 or select.args.get("order") or select.args.get("limit"):
            return None
        counted = f"(SELECT {columns} FROM {table} WHERE {on})"
        return parameters.finished(f"{head}{counted} FROM outer_rows")

    def turn(self, outer: Sample, inner: Sample, around: Sequence[Row], rows: Rows) -> Turn | None:
        """What the program executes for these rows, and the one statement with the rows it must have."""
        text = self.text(outer, inner)
        each = tuple(self._each(inner, row[self.number]) for row in around)
        found = [rows(sql, values) for sql, values in each] if text else []
        width = max((len(row) for of_row in found for row in of_row), default=0)
        if not text or not width:
            return None
        expected = tuple(
            (*row, *one)
            for row, of_row in zip(around, found, strict=True)
            for one in (of_row or [(None,) * width])
        )
        return Turn(((outer.sql, outer.values), *each), text, expected)

    def _each(self, inner: Sample, value: object) -> Text:
        """The inner query for one row."""
        if isinstance(inner.values, dict):
            name = placeholders(inner.sql)[self.place][1:]
            return inner.sql, {**inner.values, name: value}
        values = list(inner.values)
        values[self.place] = value
        return inner.sql, tuple(values)


def _value(sample: Sample, place: int) -> object:
    if isinstance(sample.values, dict):
        return sample.values[placeholders(sample.sql)[place][1:]]
    return sample.values[place]
