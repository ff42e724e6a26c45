"""Rewrite statements: keyset pagination instead of OFFSET, and comparisons that an index supports.

sqlglot parses and writes the statements. A wrong rewrite does no harm: queryprof proposes a rewrite
only if it returns the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from queryprof.planner.values import Values
from queryprof.proof.index import quote_name
from queryprof.proof.parameters import Parameters
from queryprof.proof.schema import DatabaseSchema, SchemaColumn, SchemaTable
from queryprof.proof.workload import Sample

Text = tuple[str, Values]
Row = tuple[object, ...]
Rows = Callable[[str, Values], list[Row]]
"""Executes a statement on the copy of the unchanged database."""

DIALECT = "sqlite"
MAX_CHARACTERS = 20_000
"""Statements with more characters are not parsed."""

NOT_PLAIN = ("with_", "distinct", "group", "having", "windows", "joins", "laterals")
"""Clauses that a plain SELECT does not have."""

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # no logs about unreadable statements


@dataclass(frozen=True, slots=True)
class RewriteTrial:
    """A measurement with one set of parameters.

    Attributes:
        before: the program's statements.
        after: the single statement that replaces them.
        expected: the expected rows of `after`; None to expect the rows of the single statement in
            `before`.
    """

    before: tuple[Text, ...]
    after: Text
    expected: tuple[Row, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One way to rewrite a statement.

    Attributes:
        sql: the new text, as a program would write it. how: further changes to the program, in
            words.
    """

    sql: str
    how: str
    turns: tuple[RewriteTrial, ...]


def parse_statement(sql: str) -> exp.Expr | None:
    """Return the syntax tree of a statement; None if sqlglot cannot parse the statement."""
    if len(sql) > MAX_CHARACTERS:
        return None
    try:
        return sqlglot.parse_one(sql, dialect=DIALECT)
    except (SqlglotError, RecursionError, ValueError):
        return None


def plain_select(sql: str) -> exp.Select | None:
    """Parse a plain SELECT from one table (see NOT_PLAIN); None for all other statements."""
    found = parse_statement(sql)
    if not isinstance(found, exp.Select) or any(found.args.get(name) for name in NOT_PLAIN):
        return None
    source = found.args.get("from_")
    return found if source and isinstance(source.this, exp.Table) else None


def node_sql(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT)


def parse_condition(text: str) -> exp.Expr:
    return exp.condition(text, dialect=DIALECT)


def keyset_rewritings(
    samples: Sequence[Sample], schema: DatabaseSchema, rows: Rows
) -> Iterator[Rewriting]:
    """Yield statements that replace OFFSET by a condition: start after the last row of the previous
    page.

    The method is M. Winand's, https://use-the-index-luke.com/no-offset.
    """
    turns, how = [], ""
    for sample in samples:
        made = _keyset_text(sample, schema, rows)
        if made:
            turns.append(RewriteTrial(((sample.sql, sample.values),), made[0]))
            how = made[1]
    if turns:
        yield Rewriting(turns[0].after[0], how, tuple(turns))


def _keyset_text(sample: Sample, schema: DatabaseSchema, rows: Rows) -> tuple[Text, str] | None:
    parameters = Parameters()
    select = plain_select(parameters.number_parameters(sample.sql, sample.values))
    limit, offset, order = (
        (select.args.get(n) for n in ("limit", "offset", "order")) if select else [None] * 3
    )
    if not (select and limit and offset and order):
        return None
    source = select.args["from_"].this
    table = schema.table(source.name)
    skipped = whole_number(offset.expression, parameters) or 0
    down = {bool(term.args.get("desc")) for term in order.expressions}
    columns = [term.this for term in order.expressions]
    if not table or not table.key or len(down) != 1 or skipped < 1:
        return None
    if not all(isinstance(column, exp.Column) for column in columns):
        return None
    known = {column.name.lower() for column in columns}
    prefix = columns[0].table
    columns += [exp.column(one, prefix or None) for one in table.key if one.lower() not in known]
    is_down = down == {True}
    names = [node_sql(column) for column in columns]
    order_by = [f"{name} DESC" if is_down else name for name in names]
    sorted_ = select.order_by(*order_by, append=False, dialect=DIALECT)
    last = sorted_.select(*names, append=False, dialect=DIALECT).limit(1).offset(skipped - 1)
    found = rows(*parameters.restore_placeholders(node_sql(last)))
    unknown = parse_condition(" OR ".join(f"{name} IS NULL" for name in names))
    with_null = select.select("1", append=False).where(unknown).limit(1)
    with_null.set("order", None)
    with_null.set("offset", None)
    # A comparison with NULL is never true: a page after the last value would be empty.
    if not found or rows(*parameters.restore_placeholders(node_sql(with_null))):
        return None
    plain = [column.name for column in columns]
    values = ", ".join(
        parameters.add(f"last_{name}", value) for name, value in zip(plain, found[0], strict=True)
    )
    after = f"{names[0]} {'<' if is_down else '>'} {values}"
    if len(names) > 1:
        after = f"({', '.join(names)}) {'<' if is_down else '>'} ({values})"
    page = sorted_.where(parse_condition(after))
    page.set("offset", None)
    return (
        parameters.restore_placeholders(node_sql(page)),
        (
            f"Continue after the last row of the previous page: keep its {', '.join(plain)}. The"
            " first page has no such condition."
        ),
    )


def whole_number(node: exp.Expr, parameters: Parameters) -> int | None:
    """Return the integer in a LIMIT or OFFSET; None if the value is not an integer."""
    if isinstance(node, exp.Placeholder):
        value = parameters.value(node_sql(node))
        return value if isinstance(value, int) else None
    return int(node.this) if isinstance(node, exp.Literal) and node.is_int else None


COMPARE_TOO = "Search the range that begins with the value, and keep the old comparison."
OF_TIMES = f"{COMPARE_TOO} A time with a UTC offset may have another date than its text shows."
IGNORE_CASE = "Let an index that ignores case find the rows, and keep the old comparison."
CAST_THE_VALUE = "Cast the value for an index, and keep the old comparison."
THE_COLUMN = "Compare the column itself."

FORMATS = ("%Y", "%Y-%m", "%Y-%m-%d")
"""Formats of strftime() whose result is a prefix of a time stored as text."""

TEXTS = frozenset({exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR})
NOTHING: dict[type[exp.Expr], str] = {exp.Add: "0", exp.Sub: "0", exp.Mul: "1"}
"""The right operand with which each operator leaves a value unchanged."""

BY_BYTES = ("", "BINARY")
"""Collations in which only identical bytes are equal. "" stands for the default, BINARY."""

TYPES = (
    ("INT", "INTEGER"),
    ("CHAR", "TEXT"),
    ("CLOB", "TEXT"),
    ("TEXT", "TEXT"),
    ("REAL", "REAL"),
    ("FLOA", "REAL"),
    ("DOUB", "REAL"),
)


def comparison_rewritings(
    samples: Sequence[Sample], schema: DatabaseSchema, rows: Rows
) -> Iterator[Rewriting]:
    """Yield rewrites that each change one comparison so that SQLite can use an index."""
    columns = _Columns(schema, rows)
    by_change: dict[tuple[int, str], list[RewriteTrial]] = {}
    for sample in samples:
        parameters = Parameters()
        text = parameters.number_parameters(sample.sql, sample.values)
        tree = parse_statement(text)
        for place, how, changed in _comparison_changes(text, tree, columns) if tree else ():
            turn = RewriteTrial(
                ((sample.sql, sample.values),), parameters.restore_placeholders(node_sql(changed))
            )
            by_change.setdefault((place, how), []).append(turn)
    for (_, how), turns in by_change.items():
        yield Rewriting(turns[0].after[0], how, tuple(turns))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Looks up the columns of a database and their contents."""

    schema: DatabaseSchema
    rows: Rows

    def found(self, name: exp.Column, tree: exp.Expr) -> tuple[SchemaTable, SchemaColumn] | None:
        """Return the table and column that a name in a statement refers to; None if unknown or
        ambiguous.
        """
        tables = {
            source.name.lower()
            for source in tree.find_all(exp.Table)
            if not name.table or source.alias_or_name.lower() == name.table.lower()
        }
        known = [table for one in tables if (table := self.schema.table(one))]
        found = [(table, column) for table in known if (column := table.column(name.name))]
        return found[0] if len(found) == 1 else None

    def column(self, name: exp.Column, tree: exp.Expr) -> SchemaColumn | None:
        found = self.found(name, tree)
        return found[1] if found else None

    def storage_classes(self, table: SchemaTable, column: SchemaColumn) -> set[str]:
        """Return the storage classes of a column's values, except NULL. A column may contain other
        storage classes than its type suggests (https://www.sqlite.org/datatype3.html).
        """
        named = quote_name(column.name)
        found = self.rows(f"SELECT DISTINCT typeof({named}) FROM {quote_name(table.name)}", ())
        return {str(kind) for (kind,) in found} - {"null"}


def _comparison_changes(
    text: str, tree: exp.Expr, columns: _Columns
) -> Iterator[tuple[int, str, exp.Expr]]:
    """Yield each possible change of a comparison: a number, a description, and the changed
    statement.
    """
    plus = sum(one.token_type is TokenType.PLUS for one in sqlglot.tokenize(text, DIALECT))
    if plus > len(list(tree.find_all(exp.Add))):  # sqlglot's tree drops a unary plus
        yield 0, THE_COLUMN, tree
    number = 0
    for place, equal in enumerate(list(tree.find_all(exp.EQ))):
        for how, instead in _replacements(equal, tree, columns):
            number += 1
            changed = tree.copy()
            list(changed.find_all(exp.EQ))[place].replace(parse_condition(instead))
            yield number, how, changed


def _replacements(equal: exp.EQ, tree: exp.Expr, columns: _Columns) -> Iterator[tuple[str, str]]:
    left, right = equal.this, equal.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        yield from _same_type_comparisons(left, right, tree, columns)
    for one, other in ((left, right), (right, left)):
        if not _is_value(other):
            continue
        if isinstance(one, exp.Column):
            yield from _collated_comparisons(one, other, tree, columns)
        else:
            yield from _unwrapped_comparisons(one, other, tree, columns)


def _is_value(node: exp.Expr) -> bool:
    node = node.this if isinstance(node, exp.Neg) else node
    return isinstance(node, exp.Placeholder | exp.Literal)


def _unwrapped_comparisons(
    one: exp.Expr, other: exp.Expr, tree: exp.Expr, columns: _Columns
) -> Iterator[tuple[str, str]]:
    """Yield replacements for a comparison of a value with a function or operator on a column."""
    column, value = one.find(exp.Column), node_sql(other)
    if column is None or len(list(one.find_all(exp.Column))) > 1:
        return
    name, whole = node_sql(column), f"{node_sql(one)} = {value}"
    found = columns.found(column, tree)
    kind = _affinity(found[1]) if found and found[1].type else ""
    # A function converts other storage classes, so it could match values that the column itself
    # would not.
    kinds = columns.storage_classes(*found) if found and kind else set()
    is_text = kind == "TEXT" and kinds <= {"text"}
    is_whole = kind == "INTEGER" and kinds <= {"integer"}
    is_number = kind not in ("", "TEXT") and kinds <= {"integer", "real"}
    if isinstance(one, exp.Lower | exp.Upper) and one.this is column and is_text:
        yield IGNORE_CASE, f"({name} = {value} COLLATE NOCASE AND {whole})"
    elif _is_date_of_column(one, column) and is_text:
        yield OF_TIMES, f"({name} >= {value} AND {name} < {value} || '~' AND {whole})"
    elif (
        isinstance(one, exp.Substring)
        and one.this is column
        and node_sql(one.args["start"]) == "1"
        and is_text
    ):
        yield COMPARE_TOO, f"({name} >= {value} AND {name} < {value} || char(1114111) AND {whole})"
    elif isinstance(one, exp.Cast) and one.this is column and one.to.this in TEXTS and is_whole:
        yield CAST_THE_VALUE, f"({name} = {value} + 0 AND {whole})"
    elif (
        isinstance(one, exp.DPipe)
        and one.this is column
        and node_sql(one.expression) == "''"
        and is_text
    ):
        yield THE_COLUMN, f"{name} = {value}"
    elif type(one) in NOTHING and one.this is column and is_number:
        if node_sql(one.expression) == NOTHING[type(one)]:
            yield THE_COLUMN, f"{name} = {value}"
    elif isinstance(one, exp.Coalesce) and one.this is column and len(one.expressions) == 1:
        instead = node_sql(one.expressions[0])
        how = "Compare the column itself, and NULL separately."
        yield how, f"({name} = {value} OR ({name} IS NULL AND {instead} = {value}))"


def _is_date_of_column(one: exp.Expr, column: exp.Column) -> bool:
    """Return whether an expression is date(column), or strftime(column) with a prefix of
    "%Y-%m-%d".
    """
    if isinstance(one, exp.Date):
        return one.this is column and not one.expressions and not one.args.get("zone")
    if isinstance(one, exp.TimeToStr) and isinstance(one.this, exp.TsOrDsToTimestamp):
        return one.this.this is column and one.args["format"].name in FORMATS
    return False


def _collated_comparisons(
    name: exp.Column, value: exp.Expr, tree: exp.Expr, columns: _Columns
) -> Iterator[tuple[str, str]]:
    """Yield replacements for a comparison of a column and a value, if an index on the column has
    another collation. Values with equal bytes are equal in any collation.
    """
    column, equal = columns.column(name, tree), f"{node_sql(name)} = {node_sql(value)}"
    is_by_bytes = column is not None and column.collation in BY_BYTES
    for term in [index.terms[0] for index in columns.schema.indexes] if is_by_bytes else []:
        if column and term.column == column.name and term.collation not in BY_BYTES:
            how = "Let the index find the rows with its collation, and compare as before."
            yield how, f"({equal} COLLATE {term.collation} AND {equal})"


def _same_type_comparisons(
    left: exp.Column, right: exp.Column, tree: exp.Expr, columns: _Columns
) -> Iterator[tuple[str, str]]:
    """Yield replacements for a comparison of two columns with different types or collations."""
    one, two = columns.column(left, tree), columns.column(right, tree)
    if not one or not two:
        return
    equal = f"{node_sql(left)} = {node_sql(right)}"
    if _affinity(one) != _affinity(two):
        how = "Cast the column that needs no index, or declare both with the same type."
        yield how, f"{node_sql(left)} = CAST({node_sql(right)} AS {_affinity(one)})"
        yield how, f"{node_sql(right)} = CAST({node_sql(left)} AS {_affinity(two)})"
    # SQLite uses the left column's collation (datatype3.html, 7.1).
    if one.collation in BY_BYTES and two.collation not in BY_BYTES:
        how = "Also compare with the index's collation, or declare both with the same collation."
        yield how, f"({equal} COLLATE {two.collation} AND {equal})"


def _affinity(column: SchemaColumn) -> str:
    """Return the affinity of a column's type: https://www.sqlite.org/datatype3.html, 3.1."""
    return next((kind for part, kind in TYPES if part in column.type.upper()), "NUMERIC")
