"""Query plans in words: what in one is a bad sign, and what a worse one usually means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from queryprof.analysis.plans import Steps, signs_of, worse_plans

SEPARATOR = "or, with another schema or database:"


def marked_steps(plans: Iterable[Steps], is_large: bool) -> Iterator[tuple[str, str]]:
    """The steps of a statement's plans, each with what is bad about it ("" when nothing is).

    Args:
        is_large: whether the tables that it reads from end to end are large.
    """
    for number, plan in enumerate(plans):
        if number:
            yield SEPARATOR, ""
        large = signs_of(plan).scans if is_large else ()
        for step in plan:
            yield step, _sign(step, large)


def _sign(step: str, large: tuple[str, ...]) -> str:
    signs = signs_of((step,))
    if signs.automatic_indexes:
        return "builds an index each time"
    if signs.temporary:
        return "sorts each time"
    return "reads a large table from end to end" if set(signs.scans) & set(large) else ""


def plan_change(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> str:
    """What a plan that got worse usually means; empty when none did."""
    worse = worse_plans(before, after)
    if not worse:
        return ""
    old, new = signs_of(before[0]), signs_of(worse[0])
    scanned = (*old.scans, *old.index_scans)
    for table in (*new.scans, *new.index_scans):
        if table not in scanned:
            was = _step_of(before[0], table)
            now = _step_of(worse[0], table)
            return (
                f"{f'was {was}, now' if was else 'now'} {now}: is the index gone, or is a function"
                " or another collation around the column?"
            )
    if len(new.scans) > len(old.scans):
        return "a table is read where an index was enough: is one gone, or a column more wanted?"
    if len(new.automatic_indexes) > len(old.automatic_indexes):
        return f"SQLite builds an index on {new.automatic_indexes[0]} each time: is one gone?"
    return (
        f"SQLite sorts for {', '.join(new.temporary)} each time: is an index gone that has the"
        " rows in that order?"
    )


def _step_of(plan: Steps, table: str) -> str:
    for line in plan:
        words = line.split()
        if len(words) > 1 and words[0] in ("SCAN", "SEARCH") and words[1] == table:
            return " ".join(words)
    return ""


def plans_before_and_after(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> list[str]:
    """Lines that show the plans of both sides; none where they do not differ or are unknown."""
    if not before or not after or before == after:
        return []
    lines = []
    for word, plans in (("was", before), ("now", after)):
        for plan in plans:
            lines.append(f"plan {word}  {plan[0] if plan else ''}")
            lines += [f"          {step}" for step in plan[1:]]
    return lines
