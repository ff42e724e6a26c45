"""Whether a text is one statement: APSW executes all that a text has."""

from __future__ import annotations

from typing import Any


def refuse_several(connection: Any, sql: str, values: Any = ()) -> None:
    """Raises ValueError: the text has more than one statement. None of them is executed.

    Args:
        connection: APSW's. SQLite itself finds where its statements end.
        values: the parameters of the first statement.
    """
    first, _ = _prepared(connection, sql, values)
    rest = sql[len(first) :]
    if not rest:
        return
    try:
        _, is_statement = _prepared(connection, rest, ())
    except Exception:  # what is in error, or lacks values, is no comment
        is_statement = True
    if is_statement:
        raise ValueError("refused: more than one statement")


def _prepared(connection: Any, sql: str, values: Any) -> tuple[str, bool]:
    """The text of the first statement, and whether it is more than a comment; it is not
    executed.
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
        if type(error).__name__ != "ExecTraceAbort":  # the trace has ended it
            raise
    finally:
        cursor.close()
    return found
