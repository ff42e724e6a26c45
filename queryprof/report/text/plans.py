"""Query plans as text: their problems, and the usual reasons for a worse plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from queryprof.analysis.marks import CORRELATED, INDEX, SORT, Mark, marked_step
from queryprof.analysis.plans import Steps, plan_signs, worse_plans
from queryprof.analysis.units import average

SEPARATOR = "or, with another schema or database:"


UNKNOWN_PLAN = "(unknown: queryprof reads plans only of sqlite3 and aiosqlite)"


def marked_steps(plans: Iterable[Steps], mark: Mark | None) -> Iterator[tuple[str, str]]:
    """Yield each step of a statement's plans with a description of its problem, or ""."""
    number = 0
    for number, plan in enumerate(plans, 1):
        if number > 1:
            yield SEPARATOR, ""
        marked = marked_step(plan, mark.kind) if mark else None
        for place, step in enumerate(plan):
            yield step, mark_in_words(mark) if mark and place == marked else ""
    if mark and not number:
        yield UNKNOWN_PLAN, mark_in_words(mark)


def mark_in_words(mark: Mark) -> str:
    """Describe the problem of a statement, such as "reads 60,000 rows to return 58"."""
    each = " each time" if mark.is_repeated else ""
    if mark.kind == INDEX:
        return f"builds an index{_rows_in_words(' of', mark.work)}{each}"
    if mark.kind == CORRELATED:
        steps = f": {average(mark.work)} VM steps" if mark.work is not None else ""
        return f"runs again for each row{steps}"
    if mark.kind == SORT:
        return f"sorts{each}"
    read = None if mark.work is None else mark.work + 1  # SQLite counts the steps from row to row
    return f"reads{_rows_in_words('', read)} to return {average(round(mark.returned, 1))}"


def _rows_in_words(before: str, rows: float | None) -> str:
    return "" if rows is None else f"{before} {average(round(rows, 1))} rows"


def worse_plan_reason(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> str:
    """Return the usual reason for a worse plan; "" if no plan got worse."""
    worse = worse_plans(before, after)
    if not worse:
        return ""
    old, new = plan_signs(before[0]), plan_signs(worse[0])
    scanned = (*old.scans, *old.index_scans)
    for table in (*new.scans, *new.index_scans):
        if table not in scanned:
            was = _step_for_table(before[0], table)
            now = _step_for_table(worse[0], table)
            return (
                f"{f'was {was}, now' if was else 'now'} {now}: is the index gone, or is a function"
                " or another collation around the column?"
            )
    if len(new.scans) > len(old.scans):
        return (
            "the query now reads the table, not only an index: was the index dropped, or does the"
            " query need one more column?"
        )
    if len(new.automatic_indexes) > len(old.automatic_indexes):
        return (
            f"SQLite now builds an index on {new.automatic_indexes[0]} each time: was one dropped?"
        )
    return (
        f"SQLite now sorts for {', '.join(new.temporary)} each time: was an index in that order"
        " dropped?"
    )


def _step_for_table(plan: Steps, table: str) -> str:
    for line in plan:
        words = line.split()
        if len(words) > 1 and words[0] in ("SCAN", "SEARCH") and words[1] == table:
            return " ".join(words)
    return ""


def plans_before_and_after(before: tuple[Steps, ...], after: tuple[Steps, ...]) -> list[str]:
    """Return lines with the plans of both sides; [] if the plans are equal or unknown."""
    if not before or not after or before == after:
        return []
    lines = []
    for word, plans in (("was", before), ("now", after)):
        for plan in plans:
            lines.append(f"plan {word}  {plan[0] if plan else ''}")
            lines += [f"          {step}" for step in plan[1:]]
    return lines
