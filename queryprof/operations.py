"""What programs do with a database, by the names that the recording has for it."""

FETCH_OPERATIONS = frozenset({"fetchone", "fetchmany", "fetchall", "next"})
"""Operations that serve rows of an execution which another operation began."""

STATEMENT_OPERATIONS = frozenset({"execute", "executemany", "executescript", "commit", "rollback"})
"""Operations that run a statement: each of their calls is an execution."""
