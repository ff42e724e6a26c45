"""Check that a text is a single statement, because APSW executes all statements of a text."""

from __future__ import annotations

from typing import Any


def refuse_several_statements(connection: Any, sql: str, values: Any = ()) -> None:
    """Raise ValueError if the text has more than one statement. Executes nothing.

    Args:
        connection: an APSW connection. SQLite itself finds the end of the first statement.
        values: the parameters of the first statement.
    """
    first, _ = _first_statement(connection, sql, values)
    rest = sql[len(first) :]
    if not rest:
        return
    try:
        _, is_statement = _first_statement(connection, rest, ())
    except Exception:  # invalid SQL, or SQL that lacks values, is not a comment
        is_statement = True
    if is_statement:
        raise ValueError("refused: more than one statement")


def _first_statement(connection: Any, sql: str, values: Any) -> tuple[str, bool]:
    """Return the text of the first statement, and whether the text is more than a comment.

    Does not execute the statement.
    """
    found = ("", False)

    def trace(cursor: Any, text: str, _values: object) -> bool:
        nonlocal found
        found = text, cursor.has_vdbe
        return False

    cursor = connection.cursor()
    cursor.exec_trace = trace
    try:
        cursor.execute(sql, values)
    except Exception as error:
        if type(error).__name__ != "ExecTraceAbort":  # the tracer has stopped the execution
            raise
    finally:
        cursor.close()
    return found
