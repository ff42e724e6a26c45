"""Find all problems of a profile: one finding per cause, sorted by severity and then by gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.loops import DATABASE
from queryprof.analysis.report import Report
from queryprof.findings import (
    amounts,
    autocommit,
    connections,
    covering,
    crossed_joins,
    defeated,
    few_columns,
    heavy,
    indexes,
    joins,
    large_values,
    library_work,
    locks,
    n_plus_one,
    paging,
    patterns,
    pools,
    redundant_indexes,
    references,
    repeated,
    server_plans,
    single_rows,
    sorts,
    subqueries,
    transactions,
    triggers,
    virtual_tables,
    work,
    write_ahead_log,
)
from queryprof.findings.blocking_code import (
    blocking_in_words,
    delays_in_words,
    find_blocking_code,
    merge_with_causes,
)
from queryprof.findings.choices import (
    PLAN_CATEGORIES,
    SLOW_STATEMENT_CATEGORIES,
    choose_between_findings,
)
from queryprof.findings.finding import Finding, Severity, importance_key, most_severe
from queryprof.findings.maintenance import is_maintenance
from queryprof.findings.merging import merge_same_cause
from queryprof.findings.program import Program
from queryprof.findings.source_lines import (
    NO_LINES,
    NO_TASKS,
    LoopFinder,
    SourceLines,
    TaskFinder,
)
from queryprof.model import OTHER_LINE, Frame, Schema
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.planner.facts import NO_PLANNER, Planner
from queryprof.sql.clauses import verb_of

Rule = Callable[[Program], Iterable[Finding | None]]


def find_blocked_loops(program: Program) -> Iterator[locks.Consequence]:
    for loop in program.report.loops:
        for stall in loop.stalls:
            if stall.category != DATABASE or not stall.causes:
                continue
            cause = stall.causes[0]
            delayed = (delays_in_words(stall),) if stall.delayed else ()
            is_alone = loop.loop.has_steps and not stall.delayed
            finding = program.make_finding_at_site(
                "blocked_loop",
                cause.statement,
                cause.site,
                stall.stall.total_ns,
                (
                    blocking_in_words(loop.loop.kind, stall),
                    *delayed,
                ),
                heavy.off_loop_advice(program, cause.statement),
                doubt="No callback or timer had to wait meanwhile." * is_alone,
                most=Severity.LOW if is_alone else Severity.HIGH,
            )
            if finding:
                otherwise = heavy.off_loop_addition(program, cause.statement)
                yield locks.Consequence(finding, is_of_work=True, otherwise=otherwise)


CONNECTION_SYMPTOMS = (
    "duplicate_query",
    "re_prepare",
    "n_plus_one",
    "autocommit_reads",
    "many_cheap",
    "heavy_query",
)
"""Findings that are symptoms of a function that opens a connection for each query, unless their
fixes save more.
"""

BESIDE = ("redundant_index", "lock_upgrade")
"""Findings that stay separate from other findings about the same statement and call site, because
neither explains the other.
"""

RULES: tuple[Rule, ...] = (
    locks.find_failed_lock_upgrades,
    indexes.find_stale_statistics,
    defeated.find_defeated_indexes,
    paging.find_offset_pagination,
    paging.find_over_fetching,
    subqueries.find_correlated_subqueries,
    joins.find_unused_joins,
    joins.find_duplicates_from_joins,
    crossed_joins.find_crossed_joins,
    work.find_automatic_indexes,
    covering.find_scans_of_few_columns,
    patterns.find_leading_wildcard_scans,
    references.find_unindexed_references,
    work.find_full_scans,
    joins.find_joins_from_large_tables,
    server_plans.find_bad_row_estimates,
    server_plans.find_server_scans,
    server_plans.find_unindexed_references,
    virtual_tables.find_full_text_scans,
    sorts.find_random_order,
    sorts.find_temp_btree_sorts,
    indexes.find_bad_index_choices,
    amounts.find_counts_for_existence,
    indexes.find_narrow_indexes,
    large_values.find_large_values_read,
    covering.find_missing_covering_indexes,
    connections.find_connection_per_query,
    pools.find_pool_waits,
    repeated.find_repeated_preparation,
    repeated.find_duplicate_queries,
    triggers.find_slow_triggers,
    large_values.find_large_row_updates,
    transactions.find_commit_per_write,
    transactions.find_separate_transactions,
    n_plus_one.find_n_plus_one,
    single_rows.find_single_row_inserts,
    single_rows.find_single_row_changes,
    single_rows.find_awaited_rows,
    autocommit.find_autocommit_reads,
    n_plus_one.find_queries_in_loops,
    amounts.find_many_cheap_queries,
    few_columns.find_unread_columns,
    amounts.find_slow_object_creation,
    amounts.find_rows_reduced_in_python,
    redundant_indexes.find_redundant_indexes,
    heavy.find_heavy_queries,
    heavy.find_heavy_statement_kinds,
    library_work.find_slow_library_calls,
)
"""The rules in order of precedence. At one statement and call site, the first finding is the cause,
and later findings are its symptoms.
"""


COMMIT_CATEGORIES = ("commit_per_write", "large_values", "single_inserts")
"""Findings whose gain includes the time of commits."""


def _merge_consequence(cause: Finding | None, consequence: locks.Consequence) -> Finding:
    """Join the finding about a slow statement with the finding about its consequence: a blocked
    loop or waiting transactions. The result is about the slow statement if making it faster helps
    the waiting code.
    """
    waits = consequence.finding
    is_idle = not waits.gain_ns and waits.severity is Severity.LOW  # no call waited
    if cause is None or (cause.category == "heavy_query" and not is_idle):
        return waits
    if cause.category == waits.category:  # stalls are part of the statement's time on the loop
        others = (one for one in cause.evidence if heavy.BLOCKED not in one)
        return replace(
            cause,
            severity=most_severe(cause.severity, waits.severity),
            evidence=(*waits.evidence, *others),
            doubt="",
        )
    if waits.doubt or is_idle:  # no call waited, so the fix saves nothing there
        return replace(cause, evidence=(*cause.evidence, *waits.evidence))
    said = waits.evidence
    if waits.category == "blocked_loop":
        said = (*said, consequence.otherwise)
        # The cause of a scan is known if there is an index that certainly helps.
        is_known = cause.category != "full_scan" or bool(cause.code and not cause.doubt)
    else:
        # commit_per_write explains short transactions that only sync: fewer transactions hold the
        # lock for less total time.
        explains = (*SLOW_STATEMENT_CATEGORIES, "commit_per_write")
        is_known = cause.category in explains and consequence.is_of_work
    if not is_known:  # two possible changes: take the larger gain
        if 2 * waits.gain_ns >= cause.gain_ns:
            return replace(waits, evidence=(*waits.evidence, *cause.evidence))
        return replace(cause, evidence=(*cause.evidence, *said))
    return replace(
        cause,
        gain_ns=max(cause.gain_ns, waits.gain_ns),
        share=max(cause.share, waits.share),
        severity=most_severe(cause.severity, waits.severity),
        evidence=(*cause.evidence, *said),
    )


def _key_of_cause(
    consequence: locks.Consequence, found: Mapping[tuple[str, object], Finding]
) -> tuple[str, object] | None:
    """Return the key of the finding that explains a long transaction, if the slow statement is not
    the statement that took the lock. The finding is about the same function, and its fix saves at
    least half of the time in which the lock was held.
    """
    waits = consequence.finding
    place = place_of(waits.site.frame)
    is_hold = consequence.is_of_work and consequence.held_ns > 0 and place is not None
    if not is_hold or (waits.statement, place) in found:
        return None
    causes = {
        key: one.gain_ns
        for key, one in found.items()
        if one.category in SLOW_STATEMENT_CATEGORIES
        and _function_of(one.site.frame) == _function_of(waits.site.frame)
        and one.gain_ns >= consequence.held_ns / 2
    }
    return max(causes, key=causes.__getitem__) if causes else None


def _function_of(frame: Frame | None) -> object:
    return (frame.file, frame.function) if frame else None


def _with_analyze_advice(program: Program, finding: Finding) -> Finding:
    """Add advice to run ANALYZE if SQLite chose the finding's plan from outdated statistics."""
    grown = (
        program.stale_statistics(finding.statement) if finding.category in PLAN_CATEGORIES else ()
    )
    if not grown:
        return finding
    return replace(
        finding,
        evidence=(*finding.evidence, *grown),
        fix=f"Run ANALYZE first; it may be enough. {finding.fix}",
    )


def _without_counted_commits(findings: Iterable[Finding]) -> list[Finding]:
    """Remove findings about commits whose time is already part of another finding's gain."""
    found = list(findings)
    others = [one for one in found if one.category in COMMIT_CATEGORIES]
    return [
        one
        for one in found
        if one.category != "heavy_query"
        or verb_of(one.statement) not in ("COMMIT", "END")
        or not any(
            _are_in_same_file(other, one) and 2 * other.gain_ns >= one.gain_ns for other in others
        )
    ]


def _are_in_same_file(one: Finding, other: Finding) -> bool:
    files = [each.site.frame.file if each.site.frame else "" for each in (one, other)]
    return files[0] == files[1]


def find_all(
    report: Report,
    loop_at: LoopFinder,
    schemas: Mapping[str, Schema],
    planner: Planner = NO_PLANNER,
    makes_tasks: TaskFinder = NO_TASKS,
    server: ServerFacts = NO_SERVER,
    lines: SourceLines = NO_LINES,
) -> tuple[Finding, ...]:
    """Return the findings of a profile, sorted by severity and then by gain.

    Args:
        loop_at, makes_tasks, lines: look up loops, tasks and lines in the program's source; see
            queryprof.program.sources.
        schemas: the schemas of the program's databases by file, as far as they are readable.
        planner: finds the SQL that makes a statement faster. Without it, findings have no SQL.
        server: what a PostgreSQL server reports about the statements.
    """
    program = Program(report, loop_at, schemas, planner, makes_tasks, server, lines)
    found: dict[tuple[str, object], Finding] = {}
    connected: dict[tuple[str, object], float] = {}
    for rule in RULES:
        for finding in rule(program):
            frame = finding.site.frame if finding else None
            # OTHER_LINE sums many lines, so there is no line to change
            if finding is None or frame == OTHER_LINE:
                continue
            place = finding.statement, place_of(frame)
            is_less = finding.gain_ns <= connected.get(place, -1.0)
            is_symptom = finding.category in CONNECTION_SYMPTOMS and is_less
            if is_symptom and not is_maintenance(finding.statement):
                continue
            if finding.category == "connection_per_query":
                statements = connections.statements_on_connections(program, finding)
                connected |= dict.fromkeys(statements, finding.gain_ns)
            key = finding.statement + finding.category * (finding.category in BESIDE), place[1]
            known = found.setdefault(key, _with_analyze_advice(program, finding))
            found[key] = choose_between_findings(known, finding)
    for consequence in (
        *locks.lock_findings(program),
        *write_ahead_log.find_pinned_logs(program),
        *find_blocked_loops(program),
    ):
        waits = consequence.finding
        if waits.site.frame != OTHER_LINE:
            own = (waits.statement, place_of(waits.site.frame))
            at = _key_of_cause(consequence, found) or own
            found[at] = _merge_consequence(found.get(at), consequence)
    findings = (
        replace(one, library=program.timed_library(one.statement))
        for one in merge_with_causes(
            _without_counted_commits(found.values()), find_blocking_code(program)
        )
    )
    return tuple(sorted(merge_same_cause(findings), key=importance_key))
