"""The lines of a baseline: each statement and its plans once, and one line per test.

    "statements": {
     "3f2a91": ["SELECT name FROM book WHERE id = ?", ["SEARCH book USING INTEGER PRIMARY KEY"]],
    "tests": {
     "test_book.py::test_list": "3f2a91 5x 5r 60s",

A test's line has each statement's key and figures, here 5 executions, 5 rows and 60 VM steps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from queryprof.model import BASELINE_FIGURES

UNITS = dict(zip(BASELINE_FIGURES, "xrsf", strict=True))
"""Suffixes of the numbers: executions, rows, VM steps, full-scan steps."""

NAMES = {unit: name for name, unit in UNITS.items()}
KEY = 6
"""Length of a statement's key, unless another statement would have the same key."""

MAX_DIGITS = 19
"""Maximum length of a figure, which is less than 2**63."""

Tests = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Figures by test and statement. `plans` is a list of plans, each a list of lines. Unknown figures
are missing.
"""

Entry = tuple[str, str]
"""A statement, and its plans as JSON."""


def lines_of(tests: Tests) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the statements and plans by key, and the lines by test, both sorted."""
    entries = sorted(
        {_entry(statement, one) for figures in tests.values() for statement, one in figures.items()}
    )
    keys = _keys(entries)
    statements = {keys[entry]: [entry[0], *json.loads(entry[1])] for entry in entries}
    lines = {
        test: "; ".join(
            f"{keys[entry]} {_figures_text(figures[entry[0]])}".rstrip()
            for entry in sorted(_entry(statement, one) for statement, one in figures.items())
        )
        for test, figures in sorted(tests.items())
    }
    return statements, lines


def tests_of(statements: Mapping[str, list[Any]], lines: Mapping[str, str]) -> Tests:
    """Parse the statements and lines of a baseline.

    Raises:
        KeyError, TypeError, ValueError: the lines are invalid.
    """
    for sql, *plans in statements.values():
        if not all(type(plan) is list for plan in plans):
            raise TypeError(plans)
        if not all(type(text) is str for text in (sql, *(one for plan in plans for one in plan))):
            raise TypeError(sql)
    return {
        test: dict(_parse_figures(part.split(), statements) for part in line.split("; ") if part)
        for test, line in lines.items()
    }


def _entry(statement: str, figures: Mapping[str, Any]) -> Entry:
    return statement, json.dumps(figures.get("plans", []))


def _keys(entries: Iterable[Entry]) -> dict[Entry, str]:
    """Return the start of each entry's hash, or the whole hash if two starts are equal.

    These keys rarely change when other statements come or go.
    """
    digests = {entry: hashlib.sha256(json.dumps(entry).encode()).hexdigest() for entry in entries}
    numbers: dict[str, int] = {}
    for digest in digests.values():
        numbers[digest[:KEY]] = numbers.get(digest[:KEY], 0) + 1
    return {
        entry: digest[:KEY] if numbers[digest[:KEY]] == 1 else digest
        for entry, digest in digests.items()
    }


def _figures_text(figures: Mapping[str, Any]) -> str:
    """Return the known figures. Rows and full-scan steps are omitted if zero."""
    return " ".join(
        f"{figures[name]}{unit}"
        for name, unit in UNITS.items()
        if figures.get(name) is not None and (figures[name] or name in ("executions", "vm_steps"))
    )


def _parse_figures(
    words: list[str], statements: Mapping[str, list[Any]]
) -> tuple[str, dict[str, Any]]:
    key, *numbers = words
    sql, *plans = statements[key]
    found: dict[str, Any] = {"executions": 0, "rows": 0}
    for word in numbers:
        digits, unit = word[:-1], word[-1]
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
            raise ValueError(word)
        found[NAMES[unit]] = int(digits)
    if "vm_steps" in found:
        found.setdefault("full_scan_steps", 0)
    if plans:
        found["plans"] = plans
    return sql, found
