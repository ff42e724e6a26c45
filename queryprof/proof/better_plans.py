"""Which of two plans of a statement is the better one."""

from __future__ import annotations

import re

from queryprof.analysis.plans import Steps, is_worse, signs_of

SEARCHED = re.compile(r"\s*SEARCH \S+ USING (?!AUTOMATIC).*\((.*)\)$")
COMPARED = re.compile(r"[=<>]+")


def is_better(before: Steps, after: Steps) -> bool:
    """Whether a plan searches by more, or sorts less, and reads no more from end to end."""
    if is_worse(before, after):
        return False
    return searches_more(before, after) or sorting_in(after) < sorting_in(before)


def searches_more(before: Steps, after: Steps) -> bool:
    """Whether a plan searches by more, or reads no longer from end to end: the end of an index is
    its max().
    """
    return compared_in(after) > compared_in(before) or scans_in(after) < scans_in(before)


def scans_in(plan: Steps) -> int:
    """How many tables it reads from end to end, by an index or without."""
    return len(signs_of(plan).scans + signs_of(plan).index_scans)


def sorting_in(plan: Steps) -> int:
    """How much it sorts: whole results, and results that are sorted in part."""
    return sum(1 if what.startswith("RIGHT PART") else 2 for what in signs_of(plan).temporary)


def compared_in(plan: Steps) -> int:
    """By how many comparisons its tables are searched."""
    found = [SEARCHED.match(step) for step in plan]
    return sum(len(COMPARED.findall(one[1])) for one in found if one)
