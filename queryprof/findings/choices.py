"""Choose between two findings that may both explain one slow statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from queryprof.analysis.units import duration
from queryprof.findings.finding import Finding, Severity, most_severe
from queryprof.findings.repeated import AS_PARAMETERS

ALSO_AS_PARAMETERS = " Pass the statement's values as parameters."
"""The addition to the fix of a statement that also has values in its text."""

PLAN_CATEGORIES = (
    "full_scan",
    "narrow_index",
    "temp_btree_sort",
    "automatic_index",
    "bad_index_choice",
)
"""Findings that a different plan may resolve."""

SLOW_STATEMENT_CATEGORIES = (
    "stale_statistics",
    "index_defeated",
    "offset_pagination",
    "over_fetch",
    "correlated_subquery",
    "duplicate_rows",
    "automatic_index",
    "full_scan",
    "temp_btree_sort",
    "bad_index_choice",
    "narrow_index",
)
"""Reasons why a statement takes so long that other statements wait."""

MIN_GAIN_RATIO = 1.25
"""A gain is clearly larger than another if it is this many times as large. Gains vary slightly from
run to run.
"""

MUCH_MORE_RATIO = 5
"""A doubtful fix is preferred to an index if it saves at least this many times as much."""

ONE_BY_ONE = ("commit_per_write", "single_inserts", "single_changes", "autocommit_reads")
"""Findings whose fix may save more than passing values as parameters."""


def choose_between_findings(known: Finding, finding: Finding) -> Finding:
    """Return the finding to report for a statement, usually with the evidence of the other finding.
    `known` comes from an earlier rule, and wins unless `finding` explains more or saves clearly
    more.
    """
    if known.category == "re_prepare" and (
        (finding.category == "n_plus_one" and not finding.doubt)
        or (finding.category in ONE_BY_ONE and finding.gain_ns > known.gain_ns)
    ):
        most = most_severe(known.severity, finding.severity)
        return replace(
            finding,
            severity=most,
            evidence=(*finding.evidence, *known.evidence),
            fix=finding.fix + ALSO_AS_PARAMETERS * (known.fix == AS_PARAMETERS),
        )
    if {known.category, finding.category} == {"many_objects", "n_plus_one"}:
        by_category = {one.category: one for one in (known, finding)}
        made, repeated = by_category["many_objects"], by_category["n_plus_one"]
        if not made.doubt:  # the line needs no objects, and fewer queries would create as many
            return replace(made, evidence=(*made.evidence, *repeated.evidence))
    if "duplicate_query" in (known.category, finding.category):
        return _fewer_or_smaller_queries(known, finding)
    choose = BY_PAIR.get((known.category, finding.category))
    if choose:
        return choose(known, finding)
    if not _may_be_cause(known, finding) or finding.gain_ns < 2 * known.gain_ns:
        return known
    is_copy = known.category == "missing_covering_index"  # the index copies unneeded columns
    index = () if is_copy else _index_evidence(known)
    return replace(finding, evidence=(*finding.evidence, *known.evidence, *index))


def _with_rest_of_write(commits: Finding, write: Finding) -> Finding:
    """Return the finding about commits, unless the write's other work takes longer than its commits
    and has a known cause. In that case, return the finding about the write.
    """
    rest_ns = write.gain_ns - commits.gain_ns
    if rest_ns < commits.gain_ns:
        return commits
    if write.severity is not Severity.LOW:  # the cause is known
        return replace(write, evidence=(*write.evidence, *commits.evidence))
    words = f"without its commits, the statement takes {duration(rest_ns)}"
    return replace(commits, evidence=(*commits.evidence, words))


def _scan_or_blocked_loop(scan: Finding, blocked: Finding) -> Finding:
    """Choose between the scan of a query and the event loop that it blocks."""
    is_known = bool(scan.code and not scan.doubt)  # an index that certainly helps
    first, other = (scan, blocked) if is_known else (blocked, scan)
    return replace(first, evidence=(*first.evidence, *other.evidence))


def _fewer_or_smaller_queries(known: Finding, finding: Finding) -> Finding:
    """Choose between a query's repeats and the reason why each execution takes long."""
    is_slow = known.category in (*SLOW_STATEMENT_CATEGORIES, "missing_covering_index")
    if is_slow and finding.category == "duplicate_query":
        return _with_repeat_advice(known, finding)
    if finding.category in ("many_objects", "over_fetch"):
        return _with_less_per_query(known, finding)
    return known


def _with_less_per_query(known: Finding, finding: Finding) -> Finding:
    """Choose between fewer queries (`known`) and queries that return less (`finding`). The result
    is `finding` unless its severity is low, because the source does not show what the program
    needs, or fewer queries save much more.
    """
    is_unknown = finding.severity is Severity.LOW
    if is_unknown or known.gain_ns >= MUCH_MORE_RATIO * finding.gain_ns:
        return known
    other = _run_once_alternative(known)
    return replace(finding, evidence=(*finding.evidence, *known.evidence, other))


def _run_once_alternative(finding: Finding) -> str:
    return (
        "alternative fix: run the query once and keep the result (saves up to"
        f" {duration(finding.gain_ns)})"
    )


def _transaction_or_query(known: Finding, finding: Finding) -> Finding:
    """Choose between one transaction around many queries and one query that replaces them."""
    if finding.gain_ns >= 2 * known.gain_ns:
        return replace(finding, evidence=(*finding.evidence, *known.evidence))
    other = (
        f"alternative fix: use one query instead (saves up to {duration(finding.gain_ns)})."
        f" {finding.fix}"
    )
    return replace(known, evidence=(*known.evidence, other))


def _may_be_cause(known: Finding, finding: Finding) -> bool:
    """Return whether the second finding may be the cause instead of the first."""
    is_inserted = (known.category, finding.category) == ("commit_per_write", "single_inserts")
    is_known = finding.category == "lock_wait" and finding.severity is not Severity.LOW
    is_inserted = is_inserted or (known.category == "commit_per_write" and is_known)
    if (known.category, finding.category) == ("large_values", "commit_per_write"):
        return True
    # for example, an ORM runs the query
    is_much_more = finding.gain_ns >= MUCH_MORE_RATIO * known.gain_ns
    is_query = finding.category == "n_plus_one" and (is_much_more or not finding.doubt)
    is_read = known.category in PLAN_CATEGORIES and is_query
    is_made = finding.category == "many_objects" and (is_much_more or not finding.doubt)
    return is_inserted or is_read or is_made


def _index_evidence(known: Finding) -> tuple[str, ...]:
    saving = f"saves up to {duration(known.gain_ns)}"
    return (f"alternative fix: create an index ({saving}): {known.code}",) if known.code else ()


def _with_repeat_advice(known: Finding, finding: Finding) -> Finding:
    """Return the advice for a slow query that repeats with the same values: cache it or make it
    faster.
    """
    is_surer = bool(known.doubt) and finding.severity.rank < known.severity.rank
    if finding.gain_ns >= MIN_GAIN_RATIO * known.gain_ns or (
        is_surer and MIN_GAIN_RATIO * finding.gain_ns >= known.gain_ns
    ):
        return replace(
            finding, evidence=(*finding.evidence, *known.evidence, *_index_evidence(known))
        )
    other = _run_once_alternative(finding)
    return replace(known, evidence=(*known.evidence, *finding.evidence, other))


def _wider_index_or_fewer_objects(known: Finding, finding: Finding) -> Finding:
    """Choose between a wider index and rows that need no objects. Both are doubtful."""
    if finding.gain_ns < 2 * known.gain_ns:
        return known
    return replace(finding, evidence=(*finding.evidence, *known.evidence))


BY_PAIR: dict[tuple[str, str], Callable[[Finding, Finding], Finding]] = {
    ("autocommit_reads", "n_plus_one"): _transaction_or_query,
    ("commit_per_write", "heavy_query"): _with_rest_of_write,
    ("full_scan", "blocked_loop"): _scan_or_blocked_loop,
    ("missing_covering_index", "many_objects"): _wider_index_or_fewer_objects,
}
"""How to choose, by the categories of the two findings."""
