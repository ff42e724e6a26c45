"""Other texts for statements whose way of asking is what costs: keyset instead of OFFSET, a comparison
that an index serves, one JOIN instead of a query for each row.

A text that comes out wrong is no danger: it is advised only when it returns the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from queryprof.proof.index import quoted
from queryprof.proof.schema import Column, DatabaseSchema, Table
from queryprof.proof.select import Parameters, assembled, listed, select_of
from queryprof.proof.values import Values, placeholders
from queryprof.proof.workload import Sample

Text = tuple[str, Values]
Row = tuple[object, ...]
Rows = Callable[[str, Values], list[Row]]
"""Executes a statement on the copy as the database is."""

DIRECTION = re.compile(r"^((?:\w+\.)?\"?\w+\"?)(?:\s+(ASC|DESC))?$", re.IGNORECASE)
LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?P<limit>\?\d+|\d+)\s+OFFSET\s+(?P<offset>\?\d+|\d+)$",
        r"^(?P<offset>\?\d+|\d+)\s*,\s*(?P<limit>\?\d+|\d+)$",
    )
)
ONE_TABLE = re.compile(r"^\"?(\w+)\"?(?:\s+(?:AS\s+)?(\w+))?$", re.IGNORECASE)
AGGREGATES = re.compile(r"\b(?:count|sum|total|avg|min|max|group_concat)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """What is measured with one set of parameters.

    Attributes:
        before: the statements that the program executes; after: the one instead of them.
        expected: the rows of `after`; None: those of the one statement before.
    """

    before: tuple[Text, ...]
    after: Text
    expected: tuple[Row, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One way to ask in other words.

    Attributes:
        sql: the new text, as a program would have it; how: what else to change there.
    """

    sql: str
    how: str
    turns: tuple[Turn, ...]


def keyset(samples: Sequence[Sample], schema: DatabaseSchema, rows: Rows) -> Iterator[Rewriting]:
    """For LIMIT and OFFSET: what comes after the last row of the page before.

    The method is M. Winand's, https://use-the-index-luke.com/no-offset.
    """
    turns, how = [], ""
    for sample in samples:
        made = _keyset(sample, schema, rows)
        if made:
            turns.append(Turn(((sample.sql, sample.values),), made[0]))
            how = made[1]
    if turns:
        yield Rewriting(turns[0].after[0], how, tuple(turns))


def _keyset(sample: Sample, schema: DatabaseSchema, rows: Rows) -> tuple[Text, str] | None:
    parameters = Parameters()
    select = select_of(parameters.numbered(sample.sql, sample.values))
    limit = next((m for one in LIMITS if select and (m := one.match(select.limit))), None)
    one_table = ONE_TABLE.match(select.source) if select else None
    table = schema.table(one_table[1]) if one_table else None
    terms = [DIRECTION.match(item) for item in listed(select.order)] if select else []
    if not (select and limit and one_table and table and table.key and all(terms)):
        return None
    count, offset = limit.group("limit", "offset")
    skipped = parameters.value(offset) if offset.startswith("?") else int(offset)
    names = [term[1] for term in terms if term]
    down = {(term[2] or "ASC").upper() for term in terms if term}
    if not isinstance(skipped, int) or skipped < 1 or len(down) != 1:
        return None
    prefix = names[0].rpartition(".")[0]
    bare = {name.rpartition(".")[2].strip('"').lower() for name in names}
    key = [one for one in table.key if one.lower() not in bare]
    names += [f"{prefix}.{quoted(one)}" if prefix else quoted(one) for one in key]
    direction = " DESC" if down == {"DESC"} else ""
    order = ", ".join(f"{name}{direction}" for name in names)
    last = replace(select, columns=", ".join(names), order=order, limit=f"1 OFFSET {skipped - 1}")
    found = rows(*parameters.finished(assembled(last)))
    unknown = " OR ".join(f"{name} IS NULL" for name in names)
    with_null = replace(select, columns="1", where=_both(select.where, f"({unknown})"), order="", limit="1")  # fmt: skip
    # A comparison with NULL is never true: a page after the last value would be empty.
    if not found or rows(*parameters.finished(assembled(with_null))):
        return None
    plain = [name.rpartition(".")[2].strip('"') for name in names]
    values = ", ".join(
        parameters.add(f"last_{name}", value) for name, value in zip(plain, found[0], strict=True)
    )
    left, right = (
        (names[0], values) if len(names) == 1 else (f"({', '.join(names)})", f"({values})")
    )
    condition = f"{left} {'<' if direction else '>'} {right}"
    where = _both(select.where, condition)
    text = assembled(replace(select, where=where, order=order, limit=count))
    return parameters.finished(text), (
        f"Go on after the last row of the page before: keep its {', '.join(plain)}. The first page has"
        " no such condition."
    )


def _both(where: str, condition: str) -> str:
    return f"({where}) AND {condition}" if where else condition


COLUMN, VALUE = r"((?:\w+\.)?\w+)", r"(\?\d+|'(?:[^']|'')*'|-?\d+(?:\.\d+)?)"
NAMED = COLUMN.replace("(", "(?P<column>", 1)
NO_LONGER = r"(?![\w.(]|\s*(?:COLLATE|\|\||[-+*/]))"
FORMAT = r"'%Y(?:-%m(?:-%d)?)?'"
REWRITTEN = tuple(
    (re.compile(rf"(?<![\w.]){pattern}{NO_LONGER}", re.IGNORECASE), instead, how)
    for pattern, instead, how in (
        (rf"(?:lower|upper)\({NAMED}\) ?= ?{VALUE}", r"(\1 = \2 COLLATE NOCASE AND \g<0>)",
         "Let an index that ignores case find the rows, and compare as before."),
        (rf"(?:date\({NAMED}\)) ?= ?{VALUE}", r"(\1 >= \2 AND \1 < \2 || '~' AND \g<0>)",
         "Ask for the range that begins with the value, and compare as before."),
        (rf"(?:strftime\({FORMAT}, ?{NAMED}\)) ?= ?{VALUE}",
         r"(\1 >= \2 AND \1 < \2 || '~' AND \g<0>)",
         "Ask for the range that begins with the value, and compare as before."),
        (rf"(?:substr\({NAMED}, ?1, ?\d+\)) ?= ?{VALUE}",
         r"(\1 >= \2 AND \1 < \2 || char(1114111) AND \g<0>)",
         "Ask for the range that begins with the value, and compare as before."),
        (rf"CAST\({NAMED} AS (?:TEXT|VARCHAR|CHAR)\) ?= ?{VALUE}", r"\1 = CAST(\2 AS NUMERIC)",
         "Cast the value, not the column."),
        (rf"CAST\({NAMED} AS (?:INTEGER|INT|NUMERIC|REAL)\) ?= ?{VALUE}", r"\1 = CAST(\2 AS TEXT)",
         "Cast the value, not the column."),
        (rf"{NAMED} ?(?:\|\| ?''|[-+] ?0|\* ?1) ?= ?{VALUE}", r"\1 = \2",
         "Compare the column itself."),
        (rf"\+{NAMED} ?= ?{VALUE}", r"\1 = \2", "Compare the column itself."),
        (rf"(?:ifnull|coalesce)\({NAMED}, ?{VALUE}\) ?= ?{VALUE}",
         r"(\1 = \3 OR (\1 IS NULL AND \2 = \3))", "Compare the column itself, and NULL apart."),
    )
)  # fmt: skip
"""Comparisons that keep an index from being used: pattern, text instead, and what it does."""

EQUAL = re.compile(rf"(?<![\w.(]){COLUMN} ?= ?{VALUE}{NO_LONGER}", re.IGNORECASE)
TWO_COLUMNS = re.compile(rf"(?<![\w.(]){COLUMN} ?= ?{COLUMN}{NO_LONGER}", re.IGNORECASE)
TYPES = (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("REAL", "REAL"),
         ("FLOA", "REAL"), ("DOUB", "REAL"))  # fmt: skip


def comparisons(samples: Sequence[Sample], schema: DatabaseSchema) -> Iterator[Rewriting]:
    """For comparisons that keep an index from being used: each in another way."""
    by_change: dict[tuple[int, str, str], list[Turn]] = {}
    for sample in samples:
        parameters = Parameters()
        text = parameters.numbered(sample.sql, sample.values)
        for place, instead, found, how in _changes(text, schema):
            changed = text[: found.start()] + instead + text[found.end() :]
            turn = Turn(((sample.sql, sample.values),), parameters.finished(changed))
            by_change.setdefault((place, instead, how), []).append(turn)
    for (_, _, how), turns in by_change.items():
        yield Rewriting(turns[0].after[0], how, tuple(turns))


Change = tuple[int, str, re.Match[str], str]
"""Where in a text, what is there instead of what was found, and what it does."""


def _changes(text: str, schema: DatabaseSchema) -> Iterator[Change]:
    for pattern, instead, how in REWRITTEN:
        for found in pattern.finditer(text):
            column = _column(found["column"], text, schema)
            # A number is no text, though a function of it may be: it would be lost.
            if r"\g<0>" not in instead or (column and _affinity(column) == "TEXT"):
                yield found.start(), found.expand(instead), found, how
    for found in EQUAL.finditer(text):
        yield from _collated(found, text, schema)
    for found in TWO_COLUMNS.finditer(text):
        yield from _of_one_kind(found, text, schema)


def _collated(found: re.Match[str], text: str, schema: DatabaseSchema) -> Iterator[Change]:
    """A column and a value, where an index of the column has another collation."""
    column = _column(found[1], text, schema)
    for term in [index.terms[0] for index in schema.indexes] if column else []:
        if column and term.column == column.name and term.collation not in ("", "BINARY"):
            collated = f"({found[1]} = {found[2]} COLLATE {term.collation} AND {found[0]})"
            how = "Let the index find the rows with its collation, and compare as before."
            yield found.start(), collated, found, how


def _of_one_kind(found: re.Match[str], text: str, schema: DatabaseSchema) -> Iterator[Change]:
    """Two columns of different types or collations."""
    left, right = (_column(found[number], text, schema) for number in (1, 2))
    if not left or not right:
        return
    if _affinity(left) != _affinity(right):
        for name, other, column in ((found[1], found[2], left), (found[2], found[1], right)):
            cast = f"{name} = CAST({other} AS {_affinity(column)})"
            how = "Cast the column that needs no index, or declare both with one type."
            yield found.start(), cast, found, how
    if left.collation != right.collation:
        for collation in (left.collation, right.collation):
            collated = f"({found[1]} = {found[2]} COLLATE {collation} AND {found[0]})"
            how = "Compare with the index's collation, too, or declare both with one."
            yield found.start(), collated, found, how


def _column(name: str, text: str, schema: DatabaseSchema) -> Column | None:
    """The column of a name in a statement; None where more than one table has it."""
    alias, _, column = name.rpartition(".")
    tables: list[Table] = [one for one in schema.tables if re.search(rf"\b{re.escape(one.name)}\b", text, re.IGNORECASE)]  # fmt: skip
    if alias:
        tables = [
            one for one in tables
            if one.name.lower() == alias.lower()
            or re.search(rf"\b{re.escape(one.name)}\"?\s+(?:AS\s+)?{re.escape(alias)}\b", text, re.IGNORECASE)
        ]  # fmt: skip
    found = [one for table in tables if (one := table.column(column))]
    return found[0] if len(found) == 1 else None


def _affinity(column: Column) -> str:
    """Of a column's type: https://www.sqlite.org/datatype3.html, 3.1."""
    return next((kind for part, kind in TYPES if part in column.type.upper()), "NUMERIC")


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
            if re.search(r"\bORDER\s+BY\b", sql, re.IGNORECASE):
                how += " Their order is not certain: add an ORDER BY."
            yield Rewriting(shown[0], how, (turn,))


def _keys(
    inners: Sequence[Sample], names: Sequence[str], asked: Sequence[Row]
) -> Iterator[tuple[int, int]]:
    """Which parameter is the value of which column: by their names, else by the recorded values. A
    value that is missing in `asked` says nothing where these are not all rows.
    """
    parameters = Parameters()
    select = select_of(parameters.numbered(inners[0].sql, inners[0].values))
    one_table = ONE_TABLE.match(select.source) if select else None
    if not select or not one_table:
        return
    for place in range(len(placeholders(inners[0].sql))):
        compared = re.search(rf"(\w+)\"? ?= ?\?{place + 1}(?!\d)", select.where)
        if not compared:
            continue
        named = _named_as(compared[1], one_table[1], names)
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


def _named_as(column: str, table: str, names: Sequence[str]) -> list[int]:
    """The columns that are named as what a query looks for: as a reference to it, as itself, or as
    the key that it refers to.
    """
    wanted = [f"{table}_{column}".lower(), column.lower()]
    wanted += ["id"] if re.search(r"_id$|[a-z]Id$", column) else []
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
        select = select_of(parameters.numbered(inner.sql, inner.values))
        one_table = ONE_TABLE.match(select.source) if select else None
        if not select or not one_table or not select.where:
            return None
        own = [f"outer_{re.sub(r'[^0-9A-Za-z_]', '_', name)}" for name in self.names]
        replaced = rf"\?{before + self.place + 1}(?!\d)"
        condition = re.sub(replaced, f"outer_rows.{own[self.number]}", select.where)
        head = f"WITH outer_rows({', '.join(own)}) AS ({first}) SELECT outer_rows.*, "
        if not AGGREGATES.search(select.columns):
            alias = one_table[2] or one_table[1]
            columns = f"{alias}.*" if select.columns == "*" else select.columns
            joined = f"{columns} FROM outer_rows LEFT JOIN {select.source} ON {condition}"
            return parameters.finished(head + joined)
        if len(listed(select.columns)) > 1 or select.order or select.limit:
            return None
        counted = f"(SELECT {select.columns} FROM {select.source} WHERE {condition})"
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
