"""Compare the statements of a test with its baseline, by figures that do not vary between runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.analysis.plans import worse_plans
from queryprof.comparing.baseline_figures import StatementFigures, TestFigures
from queryprof.comparing.renamed import (
    likely_replaced_statement,
    pair_renamed_statements,
    pair_widened_statements,
)
from queryprof.model import BASELINE_FIGURES

NEW = "a new statement"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A statement whose figures differ from the baseline.

    Attributes:
        before: the baseline's figures; None if the statement is new.
        after: the new figures; None if the statement is no longer executed.
        reasons: the figures that got worse, in words; empty if figures only got better.
        instead_of: the baseline's statement that this statement replaces; "" if not found. If the
            two differ only in names, `before` has the figures of the replaced statement.
    """

    statement: str
    before: StatementFigures | None
    after: StatementFigures | None
    reasons: tuple[str, ...]
    instead_of: str = ""


def deviations_from_baseline(
    before: TestFigures, after: TestFigures, rules: RegressionRules, same_sqlite: bool
) -> list[Deviation]:
    """Return the differences between a test and its baseline, regressions first.

    A new statement is compared with a missing statement if they differ only in names. They are also
    compared if one has additional words and all figures but VM steps are equal, because an
    additional column takes more steps per row.
    """
    drift = 0.0 if same_sqlite else rules.vm_steps_tolerance
    before = {s: one for s, one in before.items() if not rules.ignore.match(s)}
    after = {s: one for s, one in after.items() if not rules.ignore.match(s)}
    pairs = pair_renamed_statements(
        _missing_statement_costs(before, after), _missing_statement_costs(after, before)
    )
    widened = pair_widened_statements(
        _figures_without_steps(
            {s: one for s, one in before.items() if s not in {*after, *pairs.values()}}
        ),
        _figures_without_steps({s: one for s, one in after.items() if s not in {*before, *pairs}}),
    )
    after |= {s: replace(after[s], vm_steps=before[was].vm_steps) for s, was in widened.items()}
    pairs |= widened
    gone = set(before) - set(after) - set(pairs.values())
    found = []
    for statement in sorted(gone | set(after)):
        was = pairs.get(statement, statement)
        old, new = before.get(was), after.get(statement)
        reasons = _what_got_worse(old, new, drift, rules.fail_on)
        if reasons or _what_got_better(old, new, drift):
            instead_of = was if was != statement else ""
            if old is None:
                instead_of = likely_replaced_statement(statement, gone)
            found.append(Deviation(statement, old, new, tuple(reasons), instead_of))
    if gone and not _does_more_work(before, after, drift):
        # New statements replaced missing ones, such as a join that replaces a query in a loop.
        found = [replace(one, reasons=()) if one.reasons == (NEW,) else one for one in found]
    return sorted(found, key=lambda d: (not d.reasons, d.before is not None, d.statement))


def _figures_without_steps(figures: TestFigures) -> dict[str, object]:
    """Return all figures of each statement except its VM steps."""
    return {
        statement: (one.executions, one.rows, one.full_scan_steps, one.plans)
        for statement, one in figures.items()
    }


def _does_more_work(before: TestFigures, after: TestFigures, drift: float) -> bool:
    """Return whether the whole test has more executions or rows, or takes more steps. Unknown
    figures count as more.
    """
    for name in BASELINE_FIGURES:
        was = [getattr(one, name) for one in before.values()]
        now = [getattr(one, name) for one in after.values()]
        if None in was or None in now or sum(now) > sum(was) * (1 + drift * name.endswith("steps")):
            return True
    return False


def differences_between_runs(
    first: TestFigures, second: TestFigures, rules: RegressionRules
) -> list[Deviation]:
    """Return the regressions between two runs of a test on the same code, in either direction. Each
    would fail one run if the other run were the baseline.
    """
    found = {
        deviation.statement: deviation
        for before, after in ((second, first), (first, second))
        for deviation in deviations_from_baseline(before, after, rules, same_sqlite=True)
        if deviation.reasons
    }
    return list(found.values())


def _missing_statement_costs(
    figures: TestFigures, others: TestFigures
) -> dict[str, tuple[int, ...]]:
    """Return the costs of the statements that are missing in `others`."""
    return {
        statement: (one.executions, one.rows, one.full_scan_steps or 0, one.vm_steps or 0)
        for statement, one in figures.items()
        if statement not in others
    }


def _what_got_worse(
    before: StatementFigures | None,
    after: StatementFigures | None,
    drift: float,
    fail_on: frozenset[str],
) -> list[str]:
    if after is None:
        return []
    if before is None:
        return [NEW] if "counts" in fail_on else []
    reasons = []
    if "counts" in fail_on:
        if after.executions > before.executions:
            reasons.append("more executions")
        if after.rows > before.rows:
            reasons.append("more rows")
    if "plans" in fail_on and worse_plans(before.plans, after.plans):
        reasons.append("a worse plan")
    if "vmsteps" in fail_on:
        if _has_grown(before.full_scan_steps, after.full_scan_steps, drift):
            reasons.append("more full-scan steps")
        if _has_grown(before.vm_steps, after.vm_steps, drift):
            reasons.append("more VM steps")
    return reasons


def _has_grown(before: int | None, after: int | None, drift: float) -> bool:
    return before is not None and after is not None and after > before * (1 + drift)


def _what_got_better(
    before: StatementFigures | None, after: StatementFigures | None, drift: float
) -> bool:
    if after is None or before is None:
        return after is None
    return (
        after.executions < before.executions
        or after.rows < before.rows
        or _has_grown(after.vm_steps, before.vm_steps, drift)
        or _has_grown(after.full_scan_steps, before.full_scan_steps, drift)
        or bool(worse_plans(after.plans, before.plans))
    )
