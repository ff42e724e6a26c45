"""The rules for judging a test: which statements are checked, and which changes are regressions."""

from __future__ import annotations

import re
from dataclasses import dataclass

IGNORED = r"SAVEPOINT|RELEASE|ROLLBACK TO|BEGIN"
"""Statements that frameworks execute around tests, matched at the start of the statement."""

REPEATS = 10
"""If one call site executes one statement more often than this in one test, the statement is
reported as a repeat (N+1 query).
"""

SCANNED_ROWS = 1000
"""An execution with this many full-scan steps or more scans a large table."""


@dataclass(frozen=True, slots=True)
class RegressionRules:
    """The changes that count as a regression.

    Attributes:
        fail_on: the kinds of change that fail a test: "counts" (executions, rows, new statements),
            "plans", "vmsteps".
        ignore: a pattern of statements to skip.
        vm_steps_tolerance: the allowed increase in VM steps, as a share. If baseline and run use
            the same version of SQLite, the tolerance is 0 instead.
    """

    fail_on: frozenset[str] = frozenset({"counts", "plans", "vmsteps"})
    ignore: re.Pattern[str] = re.compile(IGNORED)
    vm_steps_tolerance: float = 0.05
