"""What a plan with tried indexes is, beside the one before."""

from __future__ import annotations

import re
import secrets

from queryprof.analysis.plans import Steps
from queryprof.proof.better_plans import compared_in, sorting_in

TRIED = f"queryprof_{secrets.token_hex(4)}_"
"""Of the names of indexes that are tried: none that the database may have, whoever made it."""

USED = re.compile(rf"USING (?:COVERING )?INDEX {TRIED}(\d{{1,4}})(?: \((.*)\))?$")


def is_as_good(before: Steps, after: Steps) -> bool:
    return compared_in(after) >= compared_in(before) and sorting_in(after) <= sorting_in(before)


def is_by_range(plan: Steps) -> bool:
    """Whether an index of ours is searched by comparisons that are none for equality."""
    found = [used[2] for step in plan if (used := USED.search(step)) and used[2]]
    return any("=" not in re.sub("[<>]=", "", listed) for listed in found)


def in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
