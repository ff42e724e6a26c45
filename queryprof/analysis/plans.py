"""Normalize query plans, find signs of high cost in them, and decide which of two plans is worse.

A plan is the output of EXPLAIN QUERY PLAN (https://www.sqlite.org/eqp.html). Any version of SQLite
may change the wording. The normal form of a plan is the same from SQLite 3.24, which introduced the
tree, to 3.53.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from queryprof.model import Plan

Steps = tuple[str, ...]
"""The normal form of a plan: one line per step, indented below its parent step."""

INDENTATION = 2

_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # SQLite up to 3.35 prints "SCAN TABLE t AS x", newer versions print "SCAN x".
        (r"^(SCAN|SEARCH) (?:TABLE )?(?:\S+ AS )?", r"\1 "),
        (r"^(SCAN|SEARCH) SUBQUERY \S+(?: AS (\S+))?", r"\1 (subquery)"),
        (r"^(SCAN|SEARCH) \d+$", r"\1 (subquery)"),
        (r"\(subquery-\d+\)", "(subquery)"),
        # Some versions print a number or an address instead of a name.
        (r"^(CO-ROUTINE|MATERIALIZE) (?:0x[0-9a-fA-F]+|\d+|\(subquery\))$", r"\1 (subquery)"),
        (r"^(?:EXECUTE )?((?:CORRELATED )?(?:SCALAR|LIST) SUBQUERY) \d+$", r"\1"),
        (r"^SCAN \d+ CONSTANT ROWS?$", "SCAN CONSTANT ROW"),
        (r" FOR LAST (?:TERM|\d+ TERMS) OF ", " FOR RIGHT PART OF "),
        (r" \(~\d+ rows?\)$", ""),
        (r" (?:LEFT|RIGHT|FULL|STRONG)-JOIN$", ""),
        # Newer versions turn EXISTS into a join.
        (r"^((?:SCAN|SEARCH) \S+) EXISTS(?= |$)", r"\1"),
    )
)

_LEFT_OUT = re.compile(r"BLOOM FILTER ON |REUSE ")
"""Steps that only newer versions of SQLite print. The normal form omits them."""

_SCAN = re.compile(
    r"SCAN (?!CONSTANT ROW|\(subquery\))(?P<scanned>.+?)(?: (?:USING|VIRTUAL TABLE) .*)?$"
    r"|SEARCH (?P<searched>(?:(?! USING | VIRTUAL TABLE )[^(])+)$"
)
"""Matches a full scan. A name may contain spaces. A SEARCH without a condition, as for max()
without an index, also reads the whole table.
"""

_INDEXED_SCAN = re.compile(r"SCAN .+ (?:USING|VIRTUAL TABLE) ")
_AUTOMATIC = re.compile(r"SEARCH (.+) USING AUTOMATIC ")
_TEMPORARY = re.compile(r"USE TEMP B-TREE FOR (.+)")
_MADE_HERE = re.compile(r"(?:CO-ROUTINE|MATERIALIZE|RECURSIVE STEP) ?(\S*)")


@dataclass(frozen=True, slots=True)
class PlanSigns:
    """The parts of a plan that may cost more than necessary.

    Attributes:
        scans: the names or aliases of tables that SQLite reads completely.
        index_scans: tables for which SQLite reads a whole index, for its order or instead of the
            table.
        automatic_indexes: tables for which SQLite builds an index in each execution.
        temporary: the clauses that need a temporary b-tree in each execution (ORDER BY, GROUP BY,
            DISTINCT).
    """

    scans: tuple[str, ...]
    index_scans: tuple[str, ...]
    automatic_indexes: tuple[str, ...]
    temporary: tuple[str, ...]


def plans_by_statement(plans: Iterable[Plan]) -> dict[str, tuple[Steps, ...]]:
    """Return the different plans of each statement, sorted."""
    found: dict[str, set[Steps]] = {}
    for plan in plans:
        found.setdefault(plan.statement, set()).add(normalize_plan(plan.tree))
    return {statement: tuple(sorted(forms)) for statement, forms in found.items()}


def worse_plans(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> tuple[Steps, ...]:
    """Return the plans in `after` that are worse than every plan in `before`. The result is empty
    if `before` is empty.
    """
    if not before or before == after:
        return ()
    return tuple(plan for plan in after if all(is_worse_plan(known, plan) for known in before))


@lru_cache(maxsize=4096)
def normalize_plan(tree: str) -> Steps:
    """Return the normal form of a plan, which is the same for all SQLite versions."""
    lines = []
    for line in tree.splitlines():
        step = line.lstrip()
        depth = (len(line) - len(step)) // INDENTATION
        for pattern, replacement in _REWRITES:
            step = pattern.sub(replacement, step)
        if step and not _LEFT_OUT.match(step):
            lines.append(" " * (INDENTATION * depth) + step)
    return tuple(lines)


@lru_cache(maxsize=4096)
def plan_signs(plan: Steps) -> PlanSigns:
    """Return the signs of high cost in a plan in normal form."""
    steps = [line.strip() for line in plan]
    made_here = {found[1] for step in steps if (found := _MADE_HERE.match(step))}
    scans = [
        (name, bool(_INDEXED_SCAN.match(step)))
        for step in steps
        if (found := _SCAN.match(step))
        and (name := found["scanned"] or found["searched"]) not in made_here
    ]
    return PlanSigns(
        tuple(table for table, is_indexed in scans if not is_indexed),
        tuple(table for table, is_indexed in scans if is_indexed),
        tuple(found[1] for step in steps if (found := _AUTOMATIC.match(step))),
        tuple(found[1] for step in steps if (found := _TEMPORARY.match(step))),
    )


def is_worse_plan(before: Steps, after: Steps) -> bool:
    """Return whether `after` has more full scans, sorts or automatic indexes than `before`.

    A scan along an index is better than a table scan and worse than a search. Plans with the same
    signs can still differ in cost. SQLite's VM steps show the difference.
    """
    old, new = plan_signs(before), plan_signs(after)
    return (
        len(new.scans) > len(old.scans)
        or len(new.scans + new.index_scans) > len(old.scans + old.index_scans)
        or len(new.automatic_indexes) > len(old.automatic_indexes)
        or len(new.temporary) > len(old.temporary)
    )
