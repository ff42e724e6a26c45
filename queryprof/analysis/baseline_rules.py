"""The rules that a test is judged by: which statements are checked, and what counts as worse."""

from __future__ import annotations

import re
from dataclasses import dataclass

IGNORED = r"SAVEPOINT|RELEASE|ROLLBACK TO|BEGIN"
"""Statements that frameworks add around tests; matched at the start of the statement."""

REPEATS = 10
"""Executions of one statement from one call site in one test beyond which it is repeated: the
sign of a query in a loop (N+1)."""

SCANNED_ROWS = 1000
"""Full-scan steps in one execution from which on a scan counts as one of a large table."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as worse.

    Attributes:
        fail_on: of counts (executions, rows, new statements), plans and vmsteps.
        ignore: a pattern of statements that are left out.
        vm_steps_tolerance: a share; between equal versions of SQLite it is 0.
    """

    fail_on: frozenset[str] = frozenset({"counts", "plans", "vmsteps"})
    ignore: re.Pattern[str] = re.compile(IGNORED)
    vm_steps_tolerance: float = 0.05
