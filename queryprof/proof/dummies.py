"""Functions and collations of the program's own, which a copy of its database lacks: dummies of
them, for planning alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from queryprof.proof.judging import Judge, StatementError

Answer = TypeVar("Answer")

MOST_UNKNOWN = 30
"""In one statement."""


def with_dummies(judge: Judge, copy: str, action: Callable[[], Answer]) -> Answer:
    """What an action on a copy returns, for which what is unknown there is made up.

    Raises:
        StatementError: SQLite refuses it for another reason.
    """
    for _ in range(MOST_UNKNOWN):
        try:
            return action()
        except StatementError as error:
            if not _add_dummy(judge, copy, str(error)):
                raise
    raise StatementError("too much in it is unknown here")


def _add_dummy(judge: Judge, copy: str, message: str) -> bool:
    """Adds the function or collation that an error of SQLite's names as unknown."""
    function = re.search(r"no such function: (\w+)", message)
    collation = re.search(r"no such collation sequence: (\w+)", message)
    if function or collation:
        judge.dummies(copy, [function[1]] if function else [], [collation[1]] if collation else [])
    return bool(function or collation)
