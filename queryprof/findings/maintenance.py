"""Statements that maintain or describe a database: checks, checkpoints, statistics, the schema."""

from __future__ import annotations

from queryprof.findings.groups import StatementGroup
from queryprof.findings.locks import VACUUM_RARELY
from queryprof.sql.clauses import is_checkpoint, pragma_name, verb_of

NEVER_IN_ONE = frozenset({"VACUUM", "ATTACH", "DETACH", "PRAGMA"})
"""Statements that SQLite refuses inside a transaction, or that do nothing there
(https://www.sqlite.org/lang_vacuum.html, lang_attach.html, pragma.html).
"""

CHECKS = frozenset({"quick_check", "integrity_check", "foreign_key_check"})
LONG_PRAGMAS = CHECKS | {"wal_checkpoint", "optimize"}
SCHEMA = frozenset(
    {
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
    }
)


def is_maintenance(statement: str) -> bool:
    """Return whether a statement works on the whole database, so that keeping the connection open
    would not make it faster.
    """
    return verb_of(statement) in ("VACUUM", "ANALYZE") or pragma_name(statement) in LONG_PRAGMAS


def is_checkpoint_group(group: StatementGroup) -> bool:
    return is_checkpoint(group.statement)


def is_check(group: StatementGroup) -> bool:
    return pragma_name(group.statement) in CHECKS


def is_schema_read(group: StatementGroup) -> bool:
    return pragma_name(group.statement) in SCHEMA


def is_analysis(group: StatementGroup) -> bool:
    return group.verb == "ANALYZE" or pragma_name(group.statement) == "optimize"


def is_attachment(group: StatementGroup) -> bool:
    return group.verb in ("ATTACH", "DETACH")


def is_vacuum(group: StatementGroup) -> bool:
    return group.verb == "VACUUM"


MAINTENANCE_KINDS = (
    (is_vacuum, "VACUUM", VACUUM_RARELY),
    (
        is_checkpoint_group,
        "checkpoint",
        (
            "Leave checkpoints to SQLite (PRAGMA wal_autocheckpoint): each one syncs the database"
            " file, and makes the next COMMIT sync the log."
        ),
    ),
    (
        is_check,
        "check",
        "Check rarely, for example after a crash: a check reads the whole database.",
    ),
    (
        is_schema_read,
        "schema read",
        (
            "Read the schema once and keep it: each schema change also changes PRAGMA"
            " schema_version. A call that creates missing tables, such as `create_all()`, reads the"
            " schema each time."
        ),
    ),
    (
        is_attachment,
        "attachment",
        (
            "If the file is always the same, attach the file once, when the connection opens:"
            " ATTACH opens the file, and SQLite then reads its schema."
        ),
    ),
    (
        is_analysis,
        "ANALYZE",
        (
            "Run ANALYZE, or PRAGMA optimize, only after the tables have changed much: ANALYZE"
            " reads all indexes."
        ),
    ),
)
"""Kinds of statements: a test, a name, and the advice if there are many."""
