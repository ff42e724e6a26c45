"""Find all problems of a profile: one finding per cause, sorted by severity and then by gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.loops import DATABASE, StallSummary
from queryprof.analysis.report import Report
from queryprof.analysis.units import counted, duration
from queryprof.findings import (
    amounts,
    autocommit,
    connections,
    covering,
    defeated,
    heavy,
    indexes,
    joins,
    large_values,
    locks,
    paging,
    patterns,
    pools,
    queries,
    redundant_indexes,
    repeated,
    server_plans,
    single_rows,
    sorts,
    subqueries,
    transactions,
    triggers,
    virtual_tables,
    work,
)
from queryprof.findings.choices import PLAN_CATEGORIES, SLOW_STATEMENT_CATEGORIES, choose
from queryprof.findings.finding import Finding, Severity, importance, most_severe
from queryprof.findings.merging import of_one_cause
from queryprof.findings.program import Program
from queryprof.findings.source_lines import (
    NO_LINES,
    NO_TASKS,
    Lines,
    LoopFinder,
    TaskFinder,
)
from queryprof.model import OTHER_LINE, Frame, Schema
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.planner.facts import NO_PLANNER, Planner
from queryprof.sql.clauses import verb_of

Rule = Callable[[Program], Iterable[Finding | None]]


def blocked_loop(program: Program) -> Iterator[locks.Consequence]:
    for loop in program.report.loops:
        for stall in loop.stalls:
            if stall.category != DATABASE or not stall.causes:
                continue
            cause = stall.causes[0]
            delayed = (
                (
                    (
                        f"{counted(stall.delayed, 'callback')} waited a total of"
                        f" {duration(stall.delay_ns)}"
                    ),
                )
                if stall.delayed
                else ()
            )
            is_alone = loop.loop.has_steps and not stall.delayed
            finding = program.about(
                "blocked_loop",
                cause.statement,
                cause.site,
                stall.stall.total_ns,
                (
                    _stalls_in_words(loop.loop.kind, stall),
                    *delayed,
                ),
                heavy.off_the_loop(program, cause.statement),
                doubt="No callback or timer waited for it." * is_alone,
                most=Severity.LOW if is_alone else Severity.HIGH,
            )
            if finding:
                otherwise = heavy.to_thread(program, cause.statement)
                yield locks.Consequence(finding, is_of_work=True, otherwise=otherwise)


def _stalls_in_words(kind: str, stall: StallSummary) -> str:
    """Return how often and how long a loop was blocked."""
    if stall.stall.count == 1:
        return f"it blocked the {kind} loop once for {duration(stall.stall.max_ns)}"
    return (
        f"it blocked the {kind} loop {counted(stall.stall.count, 'time')}"
        f" (mean {duration(stall.mean_ns)}, longest {duration(stall.stall.max_ns)})"
    )


CONNECTION_SYMPTOMS = (
    "duplicate_query",
    "re_prepare",
    "n_plus_one",
    "autocommit_reads",
    "many_cheap",
    "heavy_query",
)
"""Symptoms of a function that opens a connection for each query."""

BESIDE = ("redundant_index", "lock_upgrade")
"""Findings that stay separate from others about the same statement and call site, because they do
not explain them.
"""

RULES: tuple[Rule, ...] = (
    locks.lock_upgrade,
    indexes.stale_statistics,
    defeated.index_defeated,
    paging.offset_pagination,
    paging.over_fetch,
    subqueries.correlated_subquery,
    joins.duplicate_rows,
    work.automatic_index,
    covering.covering_scan,
    patterns.open_pattern,
    work.full_scan,
    server_plans.bad_estimate,
    server_plans.server_scan,
    server_plans.server_reference,
    virtual_tables.virtual_scan,
    sorts.random_order,
    sorts.temp_btree_sort,
    indexes.bad_index_choice,
    indexes.narrow_index,
    large_values.large_values_read,
    covering.missing_covering_index,
    connections.connection_per_query,
    pools.pool_wait,
    repeated.re_prepare,
    repeated.duplicate_query,
    triggers.trigger_work,
    large_values.large_values_written,
    transactions.commit_per_write,
    transactions.statements_alone,
    queries.n_plus_one,
    single_rows.single_inserts,
    single_rows.single_changes,
    single_rows.awaited_rows,
    autocommit.autocommit_reads,
    queries.query_in_loop,
    amounts.many_cheap,
    amounts.many_objects,
    amounts.reduced_rows,
    redundant_indexes.redundant_index,
    heavy.heavy_query,
    heavy.heavy_kind,
)
"""The rules in order of precedence. At one statement and call site, the first finding is the cause,
and later findings are its symptoms.
"""


COMMIT_CATEGORIES = ("commit_per_write", "large_values", "single_inserts")
"""Findings whose gain includes the time of commits."""


def _with_consequence(cause: Finding | None, consequence: locks.Consequence) -> Finding:
    """Join the finding about a slow statement with the finding about its consequence: a blocked
    loop or waiting transactions. The result is about the slow statement if making it faster would
    help the others.
    """
    waits = consequence.finding
    is_idle = not waits.gain_ns and waits.severity is Severity.LOW  # no call waited
    if cause is None or (cause.category == "heavy_query" and not is_idle):
        return waits
    if cause.category == waits.category:  # stalls are part of the statement's time on the loop
        return replace(
            cause,
            severity=most_severe(cause.severity, waits.severity),
            evidence=(*waits.evidence, *cause.evidence),
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


def _cause_of(
    consequence: locks.Consequence, found: Mapping[tuple[str, object], Finding]
) -> tuple[str, object] | None:
    """Return the key of the finding that explains a long transaction, if the cause is another
    statement than the one that took the lock. The finding is in the same function, and its fix
    saves at least half of the time in which the lock was held.
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


def _after_analyze(program: Program, finding: Finding) -> Finding:
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


def _without_covered(findings: Iterable[Finding]) -> list[Finding]:
    """Remove findings about commits whose time is already part of another finding's gain."""
    found = list(findings)
    others = [one for one in found if one.category in COMMIT_CATEGORIES]
    return [
        one
        for one in found
        if one.category != "heavy_query"
        or verb_of(one.statement) not in ("COMMIT", "END")
        or not any(_is_in_file(other, one) and 2 * other.gain_ns >= one.gain_ns for other in others)
    ]


def _is_in_file(one: Finding, other: Finding) -> bool:
    files = [each.site.frame.file if each.site.frame else "" for each in (one, other)]
    return files[0] == files[1]


def find(
    report: Report,
    loop_at: LoopFinder,
    schemas: Mapping[str, Schema],
    planner: Planner = NO_PLANNER,
    makes_tasks: TaskFinder = NO_TASKS,
    server: ServerFacts = NO_SERVER,
    lines: Lines = NO_LINES,
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
    connected: set[tuple[str, object]] = set()
    for rule in RULES:
        for finding in rule(program):
            frame = finding.site.frame if finding else None
            # many lines share this entry, so it names no line to change
            if finding is None or frame == OTHER_LINE:
                continue
            place = finding.statement, place_of(frame)
            if finding.category in CONNECTION_SYMPTOMS and place in connected:
                continue
            if finding.category == "connection_per_query":
                connected |= connections.served_by(program, finding)
            key = finding.statement + finding.category * (finding.category in BESIDE), place[1]
            known = found.setdefault(key, _after_analyze(program, finding))
            found[key] = choose(known, finding)
    for consequence in (*locks.lock_findings(program), *blocked_loop(program)):
        waits = consequence.finding
        if waits.site.frame != OTHER_LINE:
            own = (waits.statement, place_of(waits.site.frame))
            at = _cause_of(consequence, found) or own
            found[at] = _with_consequence(found.get(at), consequence)
    findings = of_one_cause(_without_covered(found.values()))
    order = sorted(
        (replace(one, library=program.called_library(one.statement)) for one in findings),
        key=importance,
    )
    return tuple(order)
