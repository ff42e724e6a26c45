"""Find the statements that read the records of a migration tool.

The tool adds a row for each migration and reads all rows when the program starts. So every new
migration makes the tool read one more row. This is not a regression of the program.
"""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.analysis.plans import plan_signs, plans_by_statement
from queryprof.model import Plan

MIGRATION_TABLES = frozenset({"django_migrations", "alembic_version", "migratehistory", "aerich"})
"""The default names of the tables in which Django, Alembic, peewee-migrate and Aerich record
migrations.
"""


def statements_on_migration_records(plans: Iterable[Plan]) -> frozenset[str]:
    """Return the statements whose plans scan only tables of migration tools."""
    return frozenset(
        statement
        for statement, trees in plans_by_statement(plans).items()
        if (scans := {table for tree in trees for table in plan_signs(tree).scans})
        and scans <= MIGRATION_TABLES
    )
