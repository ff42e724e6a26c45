"""Register dummies for the program's own functions and collations, which a copy of its database
lacks. The dummies are only for planning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from queryprof.planner.judging import Judge, StatementError

Answer = TypeVar("Answer")

MAX_UNKNOWN = 30
"""The maximum number of missing functions and collations in one statement."""


def run_with_dummies(judge: Judge, copy: str, action: Callable[[], Answer]) -> Answer:
    """Run an action on a copy, adding dummies for missing functions and collations. Return its
    result.

    Raises:
        StatementError: SQLite refuses the statement for another reason.
    """
    for _ in range(MAX_UNKNOWN):
        try:
            return action()
        except StatementError as error:
            if not _add_dummy(judge, copy, str(error)):
                raise
    raise StatementError("too many of its functions or collations are unknown here")


def _add_dummy(judge: Judge, copy: str, message: str) -> bool:
    """Add a dummy for the function or collation in SQLite's error. Return whether there was one."""
    function = re.search(r"no such function: (\w+)", message)
    collation = re.search(r"no such collation sequence: (\w+)", message)
    if function or collation:
        judge.add_dummies(
            copy, [function[1]] if function else [], [collation[1]] if collation else []
        )
    return bool(function or collation)
