"""Programs that drop tables and create them again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.sql.tokens import tokens_of


def is_schema_change(group: StatementGroup) -> bool:
    return group.verb in ("CREATE", "DROP", "ALTER")


def repeats_schema_changes(program: Program, groups: Sequence[StatementGroup]) -> bool:
    """Return whether statements change the schema, and the program drops and creates tables
    again.
    """
    return all(map(is_schema_change, groups)) and _recreates_tables(program.all_groups)


@lru_cache(maxsize=1)
def _recreates_tables(groups: tuple[StatementGroup, ...]) -> bool:
    """Return whether some statement drops tables, another one creates tables, and both repeat."""
    repeated = [one for one in groups if is_schema_change(one) and one.totals.executions > 1]
    words = [[token.keyword for token in tokens_of(one.statement)] for one in repeated]
    drops = any(one[:2] == ["DROP", "TABLE"] for one in words)
    makes = any(one[:2] == ["CREATE", "TABLE"] and "SELECT" not in one for one in words)
    return drops and makes
