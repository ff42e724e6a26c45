"""Rewrite an N+1 as one JOIN: an outer query, and an inner query that runs once per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from queryprof.planner.values import placeholders
from queryprof.proof.parameters import Parameters, placeholder_index
from queryprof.proof.rewriting import (
    RewriteTrial,
    Rewriting,
    Row,
    Rows,
    Text,
    node_sql,
    parse_statement,
    plain_select,
    whole_number,
)
from queryprof.proof.workload import Sample

MIN_FOUND_SHARE = 0.9
"""A rewrite is dropped if the inner query finds less than this share of the rows that it found in
the program.
"""

MAX_KEYS = 10_000
"""The maximum number of outer rows in which to search for the inner query's parameters."""


def join_queries(
    outer: Sample,
    inners: Sequence[Sample],
    columns_of: Callable[[Text], list[str]],
    is_unique: Callable[[str, str], bool],
    rows: Rows,
    most_rows: int,
    rows_each: float,
) -> Iterator[Rewriting]:
    """Yield statements that replace a query and the query that runs for each of its rows.

    Args:
        inners: the inner query with several sets of parameters.
        columns_of: returns the names of a query's columns.
        is_unique: returns whether each value occurs at most once in a table's column.
        most_rows: the number of outer rows for which the inner query is executed.
        rows_each: the mean number of rows that the inner query returned in the program.
    """
    sql = outer.sql.strip().rstrip(";")
    few = f"SELECT * FROM ({sql}) LIMIT {most_rows}"
    around = rows(few, outer.values)
    names = columns_of((outer.sql, outer.values))
    if len(set(map(str.lower, names))) != len(names) or not around:
        return
    measured = replace(outer, sql=few if len(around) == most_rows else sql)
    # The recorded values may belong to any outer row, not only to the measured rows.
    keys = rows(f"SELECT * FROM ({sql}) LIMIT {MAX_KEYS}", outer.values)
    inner = plain_select(Parameters().number_parameters(inners[0].sql, inners[0].values))
    inner_order = inner is not None and inner.args.get("order")
    for place, number in _pair_keys(inners, names, keys):
        parts = _JoinedQuery(names, place, number, is_unique)
        turn = parts.make_trial(measured, inners[0], around, rows, rows_each)
        shown = parts.text(outer, inners[0])
        if turn and shown:
            how = (
                f"One query returns all rows: {names[number]} of the first replaces the parameter."
            )
            tree = parse_statement(sql)
            if tree is None or tree.args.get("order"):
                how += " The ORDER BY inside it does not sort the result: add one at the end."
            if inner_order:
                how += " The rows within each group have no order: add it to the ORDER BY."
            yield Rewriting(shown[0], how, (turn,))


def _pair_keys(
    inners: Sequence[Sample], names: Sequence[str], keys: Sequence[Row]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of numbers: a parameter of the inner query, and the column of the outer query
    that has the parameter's values. Columns match by name, or else by the recorded values. If
    `keys` is incomplete, a missing value does not rule out a column.
    """
    recorded = [one for one in inners if not one.is_drawn]
    select = plain_select(Parameters().number_parameters(inners[0].sql, inners[0].values))
    where = select.args.get("where") if select else None
    if not select or not where:
        return
    compared = _compared_columns(where)
    for place in range(len(placeholders(inners[0].sql))):
        others = [at for at in range(len(placeholders(inners[0].sql))) if at != place]
        # Only one parameter may differ per row: the parameter that a column replaces.
        is_constant = len(recorded) > 1 and all(
            len({_parameter_value(one, at) for one in recorded}) == 1 for at in others
        )
        if place not in compared or (others and not is_constant):
            continue
        named = _similarly_named_columns(compared[place], select.args["from_"].this.name, names)
        wanted = {_parameter_value(one, place) for one in recorded}
        having = [number for number in range(len(names)) if wanted <= {row[number] for row in keys}]
        are_all = len(keys) < MAX_KEYS
        if wanted and are_all:
            named = [number for number in named if number in having]
        only = having if len(wanted) > 1 and len(having) == 1 else []
        for number in (named or only)[:1]:
            yield place, number
            return


def _compared_columns(where: exp.Expr) -> dict[int, str]:
    """Return the column compared with each parameter, by parameter number."""
    found: dict[int, str] = {}
    for equal in where.find_all(exp.EQ):
        for one, other in ((equal.this, equal.expression), (equal.expression, equal.this)):
            if isinstance(one, exp.Column) and isinstance(other, exp.Placeholder):
                found.setdefault(placeholder_index(node_sql(other)), one.name)
    return found


def _similarly_named_columns(column: str, table: str, names: Sequence[str]) -> list[int]:
    """Return the outer columns whose name suggests the compared column: the same name, a foreign
    key to it, or the id to which it refers.
    """
    words = table.lower().split("_")
    wanted = [f"{'_'.join(words[at:])}_{column}".lower() for at in range(len(words))]
    wanted += [column.lower()] if column.lower() != "id" else []  # any table may have an id
    wanted += ["id"] if column.endswith(("_id", "Id")) else []
    lower = [name.lower() for name in names]
    return [lower.index(name) for name in wanted if name in lower]


@dataclass(frozen=True, slots=True)
class _JoinedQuery:
    """Joins two queries. The outer query's column `number` replaces the inner query's parameter at
    `place`.
    """

    names: Sequence[str]
    place: int
    number: int
    is_unique: Callable[[str, str], bool]

    def text(self, outer: Sample, inner: Sample) -> Text | None:
        """Return the joined statement; None if the inner query cannot be joined."""
        parameters = Parameters()
        first = parameters.number_parameters(outer.sql.strip().rstrip(";"), outer.values)
        tree = parse_statement(first)
        first = node_sql(tree) if tree else first  # on one line
        before = parameters.count
        select = plain_select(parameters.number_parameters(inner.sql, inner.values))
        if not select or not select.args.get("where"):
            return None
        if not self._keeps_all_rows(select, before, parameters):
            return None
        own = [f"outer_{''.join(c if c.isalnum() else '_' for c in name)}" for name in self.names]
        condition = select.args["where"].this
        for one in list(condition.find_all(exp.Placeholder)):
            if placeholder_index(node_sql(one)) == before + self.place:
                one.replace(exp.column(own[self.number], "outer_rows"))
        source = select.args["from_"].this
        table, on = node_sql(source), node_sql(condition)
        columns = ", ".join(node_sql(one) for one in select.expressions)
        head = f"WITH outer_rows({', '.join(own)}) AS ({first}) SELECT outer_rows.*, "
        if not any(one.find(exp.AggFunc) for one in select.expressions):
            columns = f"{source.alias_or_name}.*" if select.is_star else columns
            return parameters.restore_placeholders(
                f"{head}{columns} FROM outer_rows LEFT JOIN {table} ON {on}"
            )
        if len(select.expressions) > 1 or select.args.get("order") or select.args.get("limit"):
            return None
        counted = f"(SELECT {columns} FROM {table} WHERE {on})"
        return parameters.restore_placeholders(f"{head}{counted} FROM outer_rows")

    def _keeps_all_rows(self, select: exp.Select, before: int, parameters: Parameters) -> bool:
        """Return whether the inner query has no LIMIT, or finds at most one row. With any other
        LIMIT, a JOIN would return more rows.
        """
        limit, offset = (select.args.get(name) for name in ("limit", "offset"))
        if not limit and not offset:
            return True
        skipped = whole_number(offset.expression, parameters) if offset else 0
        if skipped != 0 or not limit or (whole_number(limit.expression, parameters) or 0) < 1:
            return False
        return any(
            isinstance(one, exp.EQ) and self._is_key(one, select.args["from_"].this.name, before)
            for one in _split_conditions(select.args["where"].this)
        )

    def _is_key(self, equal: exp.EQ, table: str, before: int) -> bool:
        """Return whether an equality compares a unique column with the replaced parameter."""
        return any(
            isinstance(one, exp.Column)
            and isinstance(other, exp.Placeholder)
            and placeholder_index(node_sql(other)) == before + self.place
            and self.is_unique(table, one.name)
            for one, other in ((equal.this, equal.expression), (equal.expression, equal.this))
        )

    def make_trial(
        self, outer: Sample, inner: Sample, around: Sequence[Row], rows: Rows, rows_each: float
    ) -> RewriteTrial | None:
        """Return the program's statements for the rows `around`, and the joined statement with its
        expected rows. The result is None if they cannot be joined, or if the inner query finds less
        than MIN_FOUND_SHARE of the rows that it found in the program: the parameter's values then
        come from elsewhere.
        """
        text = self.text(outer, inner)
        each = tuple(self._query_of_row(inner, row[self.number]) for row in around)
        found = [rows(sql, values) for sql, values in each] if text else []
        width = max((len(row) for of_row in found for row in of_row), default=0)
        if not text or not width or sum(map(len, found)) < MIN_FOUND_SHARE * rows_each * len(found):
            return None
        expected = tuple(
            (*row, *one)
            for row, of_row in zip(around, found, strict=True)
            for one in of_row or [(None,) * width]
        )
        return RewriteTrial(((outer.sql, outer.values), *each), text, expected)

    def _query_of_row(self, inner: Sample, value: object) -> Text:
        """Return the inner query with `value` as the replaced parameter."""
        if isinstance(inner.values, dict):
            name = placeholders(inner.sql)[self.place][1:]
            return inner.sql, {**inner.values, name: value}
        values = list(inner.values)
        values[self.place] = value
        return inner.sql, tuple(values)


def _split_conditions(where: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND combines."""
    if isinstance(where, exp.Paren):
        return _split_conditions(where.this)
    if isinstance(where, exp.And):
        return [*_split_conditions(where.this), *_split_conditions(where.expression)]
    return [where]


def _parameter_value(sample: Sample, place: int) -> object:
    if isinstance(sample.values, dict):
        return sample.values[placeholders(sample.sql)[place][1:]]
    return sample.values[place]
