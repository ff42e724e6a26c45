"""Find indexes that may help a statement, from the planner's accesses and the expressions in the
statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from queryprof.analysis.plans import plan_signs
from queryprof.planner.expressions import column_expressions
from queryprof.planner.judging import EMPTY, Judge
from queryprof.proof.accesses import EQUAL, GLOB, LIKE, RANGE, Access, ComparedColumn
from queryprof.proof.index import Candidate, IndexTerm
from queryprof.proof.schema import DatabaseSchema, SchemaTable

MAX_COLUMNS, MAX_SHARE_OF_TABLE = 5, 0.6
"""The maximum number of columns in a covering index, and their maximum share of the table's
columns.
"""

PERMUTED = 3
"""The first columns compared for equality, up to this number, are tried in every order."""

REFERRING_COLUMNS_SQL = 'SELECT DISTINCT "from" FROM pragma_foreign_key_list(?)'

MAX_CANDIDATES = 60
"""The maximum number of candidates per statement."""


def candidate_indexes(
    sql: str, accesses: Sequence[Access], schema: DatabaseSchema
) -> tuple[Candidate, ...]:
    """Return the indexes that the planner may choose for a statement. Indexes with fewer columns
    come first.
    """
    found: dict[Candidate, None] = {}
    expressions = {
        name: column_expressions(sql, [column.name for column in table.columns])
        for name in {access.table for access in accesses}
        if (table := schema.table(name)) and table.rows
    }
    for access in dict.fromkeys(accesses):  # 1,000 ORs cause 1,000 equal accesses
        table = schema.table(access.table)
        if table and access.table in expressions:
            found |= dict.fromkeys(_candidates_of_access(access, table, expressions[access.table]))
    new = [one for one in found if not any(one.is_prefix_of(index) for index in schema.indexes)]
    return tuple(sorted(new, key=lambda one: len(one.terms))[:MAX_CANDIDATES])


def foreign_key_candidates(
    judge: Judge, sql: str, values: object, schema: DatabaseSchema
) -> tuple[Candidate, ...]:
    """Return indexes on the foreign key columns of tables that a write scans. SQLite scans these
    tables to find rows that refer to the changed rows.
    """
    scans = plan_signs(judge.plan(EMPTY, sql, values)).scans if judge.has_references else ()
    return tuple(
        Candidate(table, (IndexTerm(str(column)),))
        for table in scans
        if schema.table(table)
        for (column,) in judge.rows(EMPTY, REFERRING_COLUMNS_SQL, (table,))
    )


def _candidates_of_access(
    access: Access, table: SchemaTable, expressions: Sequence[str]
) -> Iterator[Candidate]:
    columns = {column.name: column for column in table.columns if not column.is_rowid}
    compared = [one for one in access.comparisons if one.column in columns]

    def term(comparison: ComparedColumn) -> IndexTerm:
        own = columns[comparison.column].collation
        wanted = {LIKE: "NOCASE", GLOB: "BINARY"}.get(comparison.operator, comparison.collation)
        return IndexTerm(comparison.column, "" if wanted == own else wanted)

    equal = list(dict.fromkeys(term(one) for one in compared if one.operator in EQUAL))
    ranges = list(
        dict.fromkeys(term(one) for one in compared if one.operator in RANGE | {LIKE, GLOB})
    )
    order = tuple(
        IndexTerm(name, "", is_descending)
        for name, is_descending in access.order
        if name in columns
    )
    if order and all(one.is_descending for one in order):
        order = tuple(IndexTerm(one.column) for one in order)  # SQLite reads the index backwards
    order = order if len(order) == len(access.order) else ()
    starts = [tuple(one) for one in permutations(equal[:PERMUTED])] if equal else [()]
    starts += [(*equal[:PERMUTED], *equal[PERMUTED:])] if len(equal) > PERMUTED else []
    starts += [(one,) for one in equal] if len(equal) > 1 else []
    computed = [IndexTerm(one, is_expression=True) for one in expressions]
    keys: dict[tuple[IndexTerm, ...], None] = {}
    for start in starts:
        left = tuple(one for one in order if one not in start)
        ends: list[tuple[IndexTerm, ...]] = [(), left, *((one,) for one in ranges)]
        ends += [(one, *ranges[:1]) for one in computed] + [(one,) for one in computed]
        ends += [(*left, one) for one in ranges if left] + [(one, *left) for one in computed]
        keys |= {tuple(dict.fromkeys(start + end)): None for end in ends}
    for key in keys:
        if not key:
            continue
        yield Candidate(table.name, key)
        if access.used is not None:
            named = {one.column for one in key}
            rest = [
                IndexTerm(name) for name in columns if name in access.used and name not in named
            ]
            most = min(MAX_COLUMNS, MAX_SHARE_OF_TABLE * len(table.columns))
            if rest and len(key) + len(rest) <= most:
                yield Candidate(table.name, (*key, *rest))
    if access.used and not keys.keys() - {()}:
        rest = [IndexTerm(name) for name in columns if name in access.used]
        if rest and len(rest) < len(table.columns) / 2:
            yield Candidate(table.name, tuple(rest))  # narrower than the table
