"""The rules for judging a test: which statements are checked, and what counts as worse."""

from __future__ import annotations

import re
from dataclasses import dataclass

IGNORED = r"SAVEPOINT|RELEASE|ROLLBACK TO|BEGIN"
"""Statements that frameworks execute around tests, matched at the start of the statement."""

REPEATS = 10
"""More executions than this, of one statement from one call site in one test, are a repeat: the
sign of an N+1 query.
"""

SCANNED_ROWS = 1000
"""An execution with this many full-scan steps or more scans a large table."""


@dataclass(frozen=True, slots=True)
class RegressionRules:
    """What counts as worse.

    Attributes:
        fail_on: any of counts (executions, rows, new statements), plans and vmsteps.
        ignore: a pattern of statements to skip.
        vm_steps_tolerance: a share. Between equal versions of SQLite it is 0.
    """

    fail_on: frozenset[str] = frozenset({"counts", "plans", "vmsteps"})
    ignore: re.Pattern[str] = re.compile(IGNORED)
    vm_steps_tolerance: float = 0.05
