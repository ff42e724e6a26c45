"""`plans="no seq scan"`: find the tables that a PostgreSQL server would read in full.

Reading a whole index counts as well. The result does not depend on the size of a test's tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from queryprof.comparing.baseline_figures import TestFigures
from queryprof.errors import QueryprofError
from queryprof.report.text.failures import ExceededLimit

DSN = "QUERYPROF_DSN"
"""Environment variable with the libpq connection string of the tests' database."""


def seq_scans(rule: str, tables: AbstractSet[str], figures: TestFigures) -> Iterable[ExceededLimit]:
    """Yield statements that have no plan without a sequential scan, or that cannot be checked.

    Args:
        tables: tables to check; empty for all.
        figures: figures of statements that have plans. SQLite's plans are ignored.
    """
    planned = {statement: one for statement, one in figures.items() if not one.plans}
    dsn = os.environ.get(DSN)
    if not dsn:
        yield ExceededLimit(
            f"plans {rule!r} cannot be checked: {DSN} is not set to a PostgreSQL server", planned
        )
        return
    if not planned:
        yield ExceededLimit(
            f"plans {rule!r} checks nothing: no PostgreSQL statement was executed", {}
        )
        return
    from queryprof.core.recorder import muted
    from queryprof.servers.postgresql.server import server_facts

    try:
        with muted():
            facts = server_facts(dsn, planned, avoids_seq_scans=True)
    except QueryprofError as error:
        yield ExceededLimit(f"plans {rule!r} cannot be checked: {error}", planned)
        return
    over = {
        statement: replace(
            planned[statement],
            plans=(tuple(f"{'  ' * depth}{step}" for depth, step in plan.steps),),
        )
        for statement, plan in facts.plans.items()
        if any(_is_in(scan.table, tables) for scan in plan.scans)
    }
    if over:
        yield ExceededLimit(f"plans {rule!r}", over, "plans")
    unknown = {statement: one for statement, one in planned.items() if statement not in facts.plans}
    if unknown:
        reason = next(iter(facts.refused.values()), "too many statements")
        yield ExceededLimit(f"plans are unknown ({reason}), so {rule!r} cannot be checked", unknown)
    read = {one.name for plan in facts.plans.values() for one in plan.tables}
    missing = sorted(name for name in tables if not any(_is_in(one, {name}) for one in read))
    if missing:
        names = ", ".join(missing)
        yield ExceededLimit(f"plans {rule!r} checks nothing: no statement uses {names}", planned)


def _is_in(table: str, tables: AbstractSet[str]) -> bool:
    """Return whether a table, given with its schema, is among names that may lack a schema."""
    name = table.lower()
    return not tables or name in tables or name.rpartition(".")[2] in tables
