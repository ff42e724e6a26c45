"""Decide whether one plan of a statement is better than another."""

from __future__ import annotations

import re

from queryprof.analysis.plans import Steps, is_worse_plan, plan_signs

SEARCHED = re.compile(r"\s*SEARCH \S+ USING (?!AUTOMATIC).*\((.*)\)$")
COMPARED = re.compile(r"[=<>]+")


def is_better_plan(before: Steps, after: Steps) -> bool:
    """Return whether the plan `after` searches by more terms or sorts less than `before`, and does
    not scan more.

    A MULTI-INDEX OR that replaces a scan may add a sort.
    """
    is_or = any("MULTI-INDEX OR" in step for step in after) and scan_count(after) < scan_count(
        before
    )
    if is_worse_plan(before, after) and not is_or:
        return False
    return searches_more(before, after) or sorting_in(after) < sorting_in(before)


def searches_more(before: Steps, after: Steps) -> bool:
    """Return whether the plan `after` searches by more terms or scans less than `before`. A max()
    that reads only the end of an index does not scan.
    """
    return comparison_count(after) > comparison_count(before) or scan_count(after) < scan_count(
        before
    )


def scan_count(plan: Steps) -> int:
    """Return how many tables a plan scans, with or without an index."""
    return len(plan_signs(plan).scans + plan_signs(plan).index_scans)


def sorting_in(plan: Steps) -> int:
    """Return how much a plan sorts: 2 per full sort, 1 per sort of partly sorted rows."""
    return sum(1 if what.startswith("RIGHT PART") else 2 for what in plan_signs(plan).temporary)


def comparison_count(plan: Steps) -> int:
    """Return the number of comparisons in a plan's index searches."""
    found = [SEARCHED.match(step) for step in plan]
    return sum(len(COMPARED.findall(one[1])) for one in found if one)
