"""A table that is sorted by random numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.model import Frame, Plan, StackSample

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
DJANGO = Frame("execute", "/venv/site-packages/django/db/models/sql/compiler.py", 1, "library")


@pytest.mark.parametrize(
    ("sql", "steps", "stack", "words"),
    [
        ("SELECT a FROM t ORDER BY random() LIMIT ?", 60_000, SITE, "ORDER BY random() makes"),
        ("SELECT a FROM t ORDER BY RAND() ASC LIMIT 1", 60_000, (DJANGO, *SITE), '.order_by("?")'),
        ("SELECT a FROM t ORDER BY random() LIMIT ?", 600, SITE, ""),  # of few rows
        ("SELECT a FROM t ORDER BY random()", 60_000, SITE, ""),  # all of them are wanted
        ("SELECT a FROM t ORDER BY b LIMIT ?", 60_000, SITE, ""),
        ("SELECT a FROM t ORDER BY random", 60_000, SITE, ""),
    ],
)
def test_random_rows(sql: str, steps: int, stack: tuple[Frame, ...], words: str) -> None:
    one = aggregate(sql, SITE, ns=300 * MS, count=50)._replace(
        rows=50, vm_steps=50 * steps, full_scan_steps=50 * steps // 6
    )
    profile = replace(
        profile_of(one),
        plans=(Plan(sql, "a.db", "SCAN t\nUSE TEMP B-TREE FOR ORDER BY"),),
        stack_samples=(StackSample(sql, stack, 1, 1),),
    )
    fixes = [each.fix for each in find_all(Report(profile), lambda *_: None, {})]
    assert any("random.sample()" in each and words in each for each in fixes) == bool(words)
