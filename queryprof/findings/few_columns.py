"""Findings about queries that load objects of which the program reads few columns."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import counted, each_if_several
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.line_words import line_and_driver_in_words
from queryprof.findings.program import Program
from queryprof.sql.clauses import selected_columns
from queryprof.sql.tokens import tokens_of

MIN_ROWS = 50
"""With at least this many rows per execution, creating objects takes most of the line's time."""

MAX_COLUMNS_SHARE = 1 / 3
"""The largest share of the selected columns that counts as few."""

SAVED = 0.75
"""The share of a line's time saved if it reads one column, not objects. Measured: 0.75 to 0.95 for
3,000 rows with 3 to 13 integers (Django 6.1, SQLAlchemy 2.1, peewee 4.5; SQLite 3.40).
"""

COLUMNS = {
    "django": "`.values_list({quoted}{flat})`",
    "sqlalchemy": "`select({of_model})`",
    "peewee": "`Model.select({of_model}).tuples()`",
    "tortoise": "`.values_list({quoted}{flat})`",
}
"""How to read some columns without creating objects, by library."""


def find_unread_columns(program: Program) -> Iterator[Finding | None]:
    """Find queries whose rows become objects, of which the program reads few columns."""
    for group in program.groups:
        library, frame = program.timed_library(group.statement), group.site.frame
        rows = group.totals.rows_each or 0.0
        is_timed = group.line_ns is not None and not program.belongs_to_other_call(group)
        if not group.reads or library not in COLUMNS or rows < MIN_ROWS or not is_timed:
            continue
        names = program.lines.only_attributes(frame) if frame else ()
        if not names or not _are_few_columns(group, names):
            continue
        runs = max(1, group.totals.statement_executions)
        each = each_if_several(runs)
        form = COLUMNS[library].format(
            quoted=", ".join(f'"{one}"' for one in names),
            flat=", flat=True" if len(names) == 1 else "",
            of_model=", ".join(f"Model.{one}" for one in names),
        )
        yield program.make_finding(
            "many_objects",
            group,
            group.cost_ns * SAVED,
            (
                (
                    f"{counted(runs, 'execution')} with {rows_of(rows)}{each};"
                    f" {line_and_driver_in_words(group)}"
                ),
                f"the line reads only {' and '.join(names)} of each object",
            ),
            f"Read only the columns that the line uses, without objects: {form}.",
            program.innermost_loop(group),
            doubt="An attribute may be a property or a relation with the name of a column.",
            most=Severity.MEDIUM,
        )


def _are_few_columns(group: StatementGroup, names: tuple[str, ...]) -> bool:
    """Return whether the names are columns of the query, and few of them. An attribute that is no
    column may be a relation, or a property that Python computes.
    """
    if any(token.keyword == "DISTINCT" for token in tokens_of(group.statement)):
        return False  # with fewer columns, DISTINCT would remove more rows
    columns = selected_columns(group.statement)
    is_column = all(one in columns or (one == "pk" and "id" in columns) for one in names)
    return is_column and len(names) <= MAX_COLUMNS_SHARE * len(columns)
