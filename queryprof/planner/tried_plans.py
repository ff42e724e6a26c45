"""Compare the plan with tried indexes to the plan without these indexes."""

from __future__ import annotations

import re
import secrets

from queryprof.analysis.plans import Steps
from queryprof.planner.better_plans import comparison_count, sorting_in

TRIED_INDEX_PREFIX = f"queryprof_{secrets.token_hex(4)}_"
"""The prefix of the names of tried indexes. It is random, so that it cannot occur in a database."""

USED = re.compile(rf"USING (?:COVERING )?INDEX {TRIED_INDEX_PREFIX}(\d{{1,4}})(?: \((.*)\))?$")


def is_as_good(before: Steps, after: Steps) -> bool:
    return comparison_count(after) >= comparison_count(before) and sorting_in(after) <= sorting_in(
        before
    )


def is_by_range(plan: Steps) -> bool:
    """Return whether a plan searches a tried index only by a range."""
    found = [used[2] for step in plan if (used := USED.search(step)) and used[2]]
    return any("=" not in re.sub("[<>]=", "", listed) for listed in found)
