"""The operations of programs on a database, by their names in the recording."""

FETCH_OPERATIONS = frozenset({"fetchone", "fetchmany", "fetchall", "next"})
"""Operations that return rows of an execution which another operation began."""

STATEMENT_OPERATIONS = frozenset({"execute", "executemany", "executescript", "commit", "rollback"})
"""Operations that run a statement: each of their calls is an execution."""

NO_CALLS = "No database calls were recorded."
