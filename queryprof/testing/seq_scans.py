"""`plans="no seq scan"`: what a PostgreSQL server would read from end to end, also along an index,
however small the tables of a test are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from queryprof.analysis.baseline_figures import TestFigures
from queryprof.errors import QueryprofError
from queryprof.report.text.failures import Excess

DSN = "QUERYPROF_DSN"
"""The variable that names the server of the tests' database, as libpq takes it."""


def seq_scans(rule: str, tables: AbstractSet[str], figures: TestFigures) -> Iterable[Excess]:
    """What of a block's statements has no other plan than one with a sequential scan, or cannot be
    checked.

    Args:
        tables: of which; empty: of any.
        figures: of the statements that have plans. Those whose plan SQLite showed are not
            PostgreSQL's.
    """
    planned = {statement: one for statement, one in figures.items() if not one.plans}
    dsn = os.environ.get(DSN)
    if not dsn:
        yield Excess(f"plans {rule!r} cannot be checked: {DSN} names no PostgreSQL server", planned)
        return
    if not planned:
        yield Excess(f"plans {rule!r} checks nothing: no statement of PostgreSQL was executed", {})
        return
    from queryprof.core.recorder import muted
    from queryprof.postgresql.server import server_facts

    try:
        with muted():
            facts = server_facts(dsn, planned, avoids_seq_scans=True)
    except QueryprofError as error:
        yield Excess(f"plans {rule!r} cannot be checked: {error}", planned)
        return
    over = {
        statement: replace(
            planned[statement],
            plans=(tuple(f"{'  ' * depth}{step}" for depth, step in plan.steps),),
        )
        for statement, plan in facts.plans.items()
        if any(_is_of(scan.table, tables) for scan in plan.scans)
    }
    if over:
        yield Excess(f"plans {rule!r}", over, "plans")
    unknown = {statement: one for statement, one in planned.items() if statement not in facts.plans}
    if unknown:
        reason = next(iter(facts.refused.values()), "too many statements")
        yield Excess(f"plans are not known ({reason}), so that {rule!r} cannot be checked", unknown)
    read = {one.name for plan in facts.plans.values() for one in plan.tables}
    missing = sorted(name for name in tables if not any(_is_of(one, {name}) for one in read))
    if missing:
        names = ", ".join(missing)
        yield Excess(f"plans {rule!r} checks nothing: no statement is about {names}", planned)


def _is_of(table: str, tables: AbstractSet[str]) -> bool:
    """Whether a table with its schema is one of some, which may have none."""
    name = table.lower()
    return not tables or name in tables or name.rpartition(".")[2] in tables
