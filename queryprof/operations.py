"""Operations of programs on a database, by their names in the recording."""

UNCOUNTED = "fetchtable"
"""The operation that returns all rows in another library's format. Their number is unknown."""

FETCH_OPERATIONS = frozenset({"fetchone", "fetchmany", "fetchall", UNCOUNTED, "next"})
"""Operations that return rows of an execution that another operation began."""

STATEMENT_OPERATIONS = frozenset({"execute", "executemany", "executescript", "commit", "rollback"})
"""Operations that run a statement. Each call is an execution."""

POOL_WAIT = "pool wait"
"""The operation that waits for a connection of a pool."""

OWN_NOTE = "Django's own, for its list of queries; only with DEBUG = True"
"""The note on statements that a library executes for itself."""

NO_CALLS = "No database calls were recorded."
