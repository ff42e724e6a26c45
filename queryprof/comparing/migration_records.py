"""Find the statements that read the records of a migration tool.

Each migration adds a row to these records. The tool reads all of them when the program starts, so
after any migration it reads one row more. This is not a regression of the program.
"""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.analysis.plans import plan_signs, plans_by_statement
from queryprof.model import Plan

MIGRATION_TABLES = frozenset({"django_migrations", "alembic_version", "migratehistory", "aerich"})
"""The tables of Django, Alembic, peewee-migrate and Aerich, by their default names."""


def statements_on_migration_records(plans: Iterable[Plan]) -> frozenset[str]:
    """Return the statements whose plans scan only tables of migration tools."""
    return frozenset(
        statement
        for statement, trees in plans_by_statement(plans).items()
        if (scans := {table for tree in trees for table in plan_signs(tree).scans})
        and scans <= MIGRATION_TABLES
    )
