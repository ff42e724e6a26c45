"""Text and figures of a comparison that all formats share."""

from __future__ import annotations

from queryprof.analysis.units import UNKNOWN, average, duration, format_bytes
from queryprof.comparing.comparison_result import Comparison, MetricChange, StatementChange, Verdict
from queryprof.comparing.verdicts import MIN_TIMED_RUNS
from queryprof.report.places import Places
from queryprof.report.text.plans import worse_plan_reason


def metric_name(change: MetricChange) -> str:
    """Return the name of a metric for use in sentences."""
    return change.metric.removesuffix("_ns").replace("_per_database_s", "/s").replace("_", " ")


def metric_value(change: MetricChange, side: float | None) -> str:
    """Return a metric's value with its unit."""
    if change.metric.endswith("_bytes"):
        return format_bytes(side)
    return duration(side) if change.metric.endswith("_ns") else average(side)


def change_in_percent(change: MetricChange) -> str:
    """Return the change in percent, with its interval if known."""
    if change.ratio is None:
        known = change.before is not None and change.after is not None
        return "new" if known and change.after else UNKNOWN if not known else "="
    percent = (change.ratio - 1) * 100
    if change.interval is None:
        return "=" if percent == 0 else f"{percent:+,.1f}%"
    low, high = ((bound - 1) * 100 for bound in change.interval)
    return f"{percent:+,.1f}% ({low:+,.1f} to {high:+,.1f})"


def statement_change_in_words(change: StatementChange) -> str:
    """Return the changes that made a statement worse, or else those that made it better."""
    shown = [c for c in change.changes if c.verdict in (Verdict.WORSE, Verdict.BETTER)]
    worse = [c for c in shown if c.verdict is Verdict.WORSE] or shown
    parts = [
        f"{metric_name(c)} {metric_value(c, c.before)} -> {metric_value(c, c.after)}"
        for c in worse
        if change.kind == "known" or c.metric == "executions"
    ]
    plan = worse_plan_reason(change.plans.before, change.plans.after)
    return "; ".join([*parts, plan] if plan else parts)


def changed_thing(change: StatementChange | MetricChange) -> str:
    """Return the statement, or the name of the metric, that changed."""
    return change.statement if isinstance(change, StatementChange) else metric_name(change)


def change_line(change: StatementChange | MetricChange) -> str:
    """Return how a statement or metric changed, in one line."""
    if isinstance(change, StatementChange):
        return statement_change_in_words(change)
    return (
        f"{metric_value(change, change.before)} -> {metric_value(change, change.after)}"
        f" {change_in_percent(change)}"
    )


def most_changed_site(change: StatementChange, places: Places) -> str:
    """Return the call site whose executions changed most, or "" if unknown."""
    return places.site(change.sites[0].site) if change.sites else ""


def comparison_summary(comparison: Comparison) -> str:
    """Return how much changed, in one sentence."""
    kinds = [change.kind for change in comparison.statements]
    verdicts = [change.verdict for change in comparison.statements]
    parts = [
        f"{kinds.count('new')} new",
        f"{kinds.count('gone')} gone",
        f"{verdicts.count(Verdict.WORSE)} worse",
        f"{verdicts.count(Verdict.BETTER)} better",
    ]
    return f"{len(kinds)} statements: {', '.join(parts)}"


IN_ALL = ("vm_steps", "database_ns")


def run_totals_sentence(comparison: Comparison) -> str:
    """Compare the whole runs in one sentence; "" if nothing is known."""
    parts = [
        f"{metric_name(change)} {metric_value(change, change.before)} ->"
        f" {metric_value(change, change.after)}"
        f" ({change_in_percent(change)})"
        for change in comparison.whole
        if change.metric in IN_ALL and change.ratio is not None
    ]
    return f"in total: {', '.join(parts)}" if parts else ""


def verdict_cautions(comparison: Comparison) -> list[str]:
    """Return sentences on the limits of the verdicts."""
    found = []
    if min(comparison.before_runs, comparison.after_runs) < MIN_TIMED_RUNS:
        found.append(
            f"too few runs to judge times: {MIN_TIMED_RUNS} per side needed,"
            f" {comparison.before_runs} and {comparison.after_runs} given"
        )
    if not comparison.same_sqlite:
        found.append("the runs had different versions of SQLite: VM steps may drift")
    kinds = {change.kind for change in comparison.statements}
    if {"new", "gone"} <= kinds and "known" not in kinds:
        found.append(
            "the sides have no statement in common: are they recordings of the same program?"
        )
    return found
