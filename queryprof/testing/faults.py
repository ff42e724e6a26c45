"""Findings of one test: queries in loops, and scans that an index would avoid."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from pathlib import Path

from queryprof.analysis.plans import plan_signs, plans_by_statement
from queryprof.analysis.report import Report
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import muted
from queryprof.findings.few_rows import MIN_LAZY
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of_test
from queryprof.model import Aggregate, Plan
from queryprof.recorder.recording import profile_so_far
from queryprof.sql.clauses import READS, verb_of
from queryprof.testing.calls import Calls

NAMES = ("test_", "conftest.", "factories.", "factory.")
"""Prefixes of test file names."""

FOLDERS = frozenset({"tests", "test", "testing"})
"""Names of folders with tests."""


def findings_in_calls(
    calls: Calls, categories: Collection[str], test_file: str, accepted: Collection[str]
) -> list[Finding]:
    """Return the findings on a test's queries.

    Args:
        categories: a subset of TEST_CATEGORIES.
        test_file: file of the test. Queries and loops in test files, in conftest.py and in their
            helper modules are not judged.
        accepted: identities of accepted findings.
    """
    ignore = calls.rules.ignore
    aggregates = [one for one in calls.aggregates() if not ignore.match(one.statement)]
    plans = calls.plans()
    if not _may_have_findings(aggregates, plans, categories):
        return []
    with muted(), own_imports():
        whole = profile_so_far()
        report = Report(replace(whole, aggregates=tuple(aggregates), plans=tuple(plans)))
        statements = dict.fromkeys(one.statement for one in whole.aggregates)
        found = findings_of_test(report, statements, categories, _tests_like(test_file))
    return [one for one in found if one.identity not in accepted]


def _may_have_findings(
    aggregates: list[Aggregate], plans: list[Plan], categories: Collection[str]
) -> bool:
    """Return whether counts or plans show signs of a finding, so that an analysis is worthwhile."""
    runs: dict[str, int] = {}
    for one in aggregates:
        runs[one.statement] = runs.get(one.statement, 0) + one.count
    if "n_plus_one" in categories and any(
        number >= MIN_LAZY and verb_of(statement) in READS for statement, number in runs.items()
    ):
        return True
    forms = plans_by_statement(plans).values() if "full_scan" in categories else ()
    return any(plan_signs(plan).scans for found in forms for plan in found)


def _tests_like(test_file: str) -> Callable[[str], bool]:
    """Return a function that recognizes test files by their names or folders."""
    own = os.path.realpath(test_file)

    @cache
    def is_test(file: str) -> bool:
        *folders, name = Path(os.path.realpath(file)).parts
        is_named = name.startswith(NAMES) or name.endswith("_test.py")
        return os.path.realpath(file) == own or is_named or not FOLDERS.isdisjoint(folders[-2:])

    return is_test
