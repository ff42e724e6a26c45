"""Query plans: their normal form, what in them is a bad sign, and which of two is worse.

A plan is what EXPLAIN QUERY PLAN prints (https://www.sqlite.org/eqp.html). Its words change from
version to version of SQLite, which does not promise to keep them; the normal form is the same
for the same plan from SQLite 3.24, which made it a tree, to 3.53.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from queryprof.model import Plan

Steps = tuple[str, ...]
"""The normal form of a plan: a line a step, indented by what it is part of."""

INDENTATION = 2

_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Until 3.35 "SCAN TABLE t AS x", from 3.36 on "SCAN x".
        (r"^(SCAN|SEARCH) (?:TABLE )?(?:\S+ AS )?", r"\1 "),
        (r"^(SCAN|SEARCH) SUBQUERY \S+(?: AS (\S+))?", r"\1 (subquery)"),
        (r"^(SCAN|SEARCH) \d+$", r"\1 (subquery)"),
        (r"\(subquery-\d+\)", "(subquery)"),
        # Some versions number what others name, or print its address.
        (r"^(CO-ROUTINE|MATERIALIZE) (?:0x[0-9a-fA-F]+|\d+|\(subquery\))$", r"\1 (subquery)"),
        (r"^(?:EXECUTE )?((?:CORRELATED )?(?:SCALAR|LIST) SUBQUERY) \d+$", r"\1"),
        (r"^SCAN \d+ CONSTANT ROWS?$", "SCAN CONSTANT ROW"),
        (r" FOR LAST (?:TERM|\d+ TERMS) OF ", " FOR RIGHT PART OF "),
        (r" \(~\d+ rows?\)$", ""),
        (r" (?:LEFT|RIGHT|FULL|STRONG)-JOIN$", ""),
        # Of EXISTS that newer versions turn into a join.
        (r"^((?:SCAN|SEARCH) \S+) EXISTS(?= |$)", r"\1"),
    )
)

_LEFT_OUT = re.compile(r"BLOOM FILTER ON |REUSE ")
"""Steps that only newer versions have, or print."""

_SCAN = re.compile(
    r"SCAN (?!CONSTANT ROW|\(subquery\))(?P<scanned>.+?)(?: (?:USING|VIRTUAL TABLE) .*)?$"
    r"|SEARCH (?P<searched>(?:(?! USING | VIRTUAL TABLE )[^(])+)$"
)
"""A name may have spaces. What is searched by nothing, for a max() without an index, is read from
end to end, too."""

_INDEXED_SCAN = re.compile(r"SCAN .+ (?:USING|VIRTUAL TABLE) ")
_AUTOMATIC = re.compile(r"SEARCH (.+) USING AUTOMATIC ")
_TEMPORARY = re.compile(r"USE TEMP B-TREE FOR (.+)")
_MADE_HERE = re.compile(r"(?:CO-ROUTINE|MATERIALIZE|RECURSIVE STEP) ?(\S*)")


@dataclass(frozen=True, slots=True)
class Signs:
    """What in a plan costs more than it may have to.

    Attributes:
        scans: tables that are read from end to end, with the name that the statement gives them.
        index_scans: of whole tables along an index: in its order, or instead of the table.
        automatic_indexes: tables that an index is built for, each time the statement runs.
        temporary: what a temporary b-tree is built for, each time: ORDER BY, GROUP BY, DISTINCT.
    """

    scans: tuple[str, ...]
    index_scans: tuple[str, ...]
    automatic_indexes: tuple[str, ...]
    temporary: tuple[str, ...]


def plans_by_statement(plans: Iterable[Plan]) -> dict[str, tuple[Steps, ...]]:
    """The different plans of each statement, sorted."""
    found: dict[str, set[Steps]] = {}
    for plan in plans:
        found.setdefault(plan.statement, set()).add(normal_form(plan.tree))
    return {statement: tuple(sorted(forms)) for statement, forms in found.items()}


def worse_plans(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> tuple[Steps, ...]:
    """The plans that are worse than every one before; none when no plan before is known."""
    if not before or before == after:
        return ()
    return tuple(plan for plan in after if all(is_worse(known, plan) for known in before))


@lru_cache(maxsize=4096)
def normal_form(tree: str) -> Steps:
    """The steps of a plan, indented by what they are part of, the same for any SQLite version."""
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
def signs_of(plan: Steps) -> Signs:
    """The bad signs in a plan (its normal form)."""
    steps = [line.strip() for line in plan]
    made_here = {found[1] for step in steps if (found := _MADE_HERE.match(step))}
    scans = [
        (name, bool(_INDEXED_SCAN.match(step)))
        for step in steps
        if (found := _SCAN.match(step))
        and (name := found["scanned"] or found["searched"]) not in made_here
    ]
    return Signs(
        tuple(table for table, is_indexed in scans if not is_indexed),
        tuple(table for table, is_indexed in scans if is_indexed),
        tuple(found[1] for step in steps if (found := _AUTOMATIC.match(step))),
        tuple(found[1] for step in steps if (found := _TEMPORARY.match(step))),
    )


def is_worse(before: Steps, after: Steps) -> bool:
    """Whether a plan reads from end to end, sorts or builds an index where the other did not.

    A scan along an index is better than one of the table, and worse than a search. Where both
    cost the same by these signs, one may still be worse than the other: SQLite's steps show it.
    """
    old, new = signs_of(before), signs_of(after)
    return (
        len(new.scans) > len(old.scans)
        or len(new.scans + new.index_scans) > len(old.scans + old.index_scans)
        or len(new.automatic_indexes) > len(old.automatic_indexes)
        or len(new.temporary) > len(old.temporary)
    )
