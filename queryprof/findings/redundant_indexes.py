"""Findings about unneeded indexes: another index begins with the same columns."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program


def _django_advice(program: Program, group: StatementGroup) -> str:
    if program.timed_library(group.statement) != "django":
        return ""
    return (
        " In Django: db_index=False on the field (a ForeignKey has an index by default), and a"
        " migration."
    )


def find_redundant_indexes(program: Program) -> Iterator[Finding | None]:
    for schema in program.schemas.values():
        for index in schema.indexes:
            wider = next(
                (
                    other
                    for other in schema.indexes
                    if other is not index
                    and other.table == index.table
                    and not index.is_unique
                    and not index.is_partial
                    and not other.is_partial
                    and (len(other.columns), other.name) > (len(index.columns), index.name)
                    and index.is_prefix_of(other)
                ),
                None,
            )
            writers = [
                group for group in program.groups if group.clauses.changed == index.table.lower()
            ]
            if wider is None or not writers:
                continue
            of_table = sum(other.table == index.table for other in schema.indexes)
            most = max(writers, key=lambda group: group.totals.self_ns)
            yield program.make_finding(
                "redundant_index",
                most,
                sum(group.steady_ns for group in writers) / (of_table + 1),
                (
                    (
                        f"{index.name} ({', '.join(index.columns)}) is a prefix of"
                        f" {wider.name} ({', '.join(wider.columns)}); each write to"
                        f" {index.table} updates both indexes"
                    ),
                ),
                f"Drop {index.name}: {wider.name} serves the same"
                f" queries.{_django_advice(program, most)}",
                code=f"DROP INDEX {index.name};",
                doubt="The gain is an estimate: the write time, split equally among the table and"
                " its indexes.",
                most=Severity.LOW,
            )
