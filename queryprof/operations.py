"""The operations of programs on a database, by their names in the recording."""

UNCOUNTED = "fetchtable"
"""The operation that returns all rows in a form of another library: how many is not known."""

FETCH_OPERATIONS = frozenset({"fetchone", "fetchmany", "fetchall", UNCOUNTED, "next"})
"""Operations that return rows of an execution which another operation began."""

STATEMENT_OPERATIONS = frozenset({"execute", "executemany", "executescript", "commit", "rollback"})
"""Operations that run a statement: each of their calls is an execution."""

OWN_NOTE = "Django's own, for its list of queries: none of it where DEBUG is False"
"""The note of statements that a library executes for itself."""

NO_CALLS = "No database calls were recorded."
