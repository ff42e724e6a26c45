"""Prove advice: copy the database, change the copy, and measure the recorded statements."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.report import Report
from queryprof.errors import ProofError
from queryprof.findings.finding import Finding
from queryprof.model.advice import Advice, DatabaseChange, NotMeasured, Proof
from queryprof.planner.index_trial import StatementTrial
from queryprof.planner.judging import (
    AFTER,
    BEFORE,
    EMPTY,
    WHOLE,
    Judge,
    Measurement,
    OutOfTime,
    StatementError,
    start_judge,
)
from queryprof.program.database_schema import read_only_uri, why_unreadable
from queryprof.proof.accesses import Accesses
from queryprof.proof.analyze_change import AnalyzeChange
from queryprof.proof.costs import is_less_work, mean_cost, total_cost
from queryprof.proof.index import has_index
from queryprof.proof.index_search import ChangeSearch, Step
from queryprof.proof.rewrites import faster_rewrites
from queryprof.proof.sample import replace_by_sample
from queryprof.proof.schema import DatabaseSchema, read_schema
from queryprof.proof.workload import RecordedStatement, recorded_queries
from queryprof.sql.clauses import WRITES, clauses_of, verb_of
from queryprof.sql.temporary_tables import temporary_tables

BUDGET_S = 60.0
SEARCH_SHARE = 0.6
"""The share of the time limit for the search. The proof takes the rest."""

ROUNDS, ENOUGH_NS = 5, 100_000_000
"""The number of alternating executions before and after the changes, and the time (ns) after which
fewer are enough.
"""

SLOW_NS = 20_000_000
"""If a statement took longer than this in the search, and is much faster with the changes, it is
not executed again without the changes.
"""

LONG_NS = 300_000_000
"""If an execution takes longer than this, one set of parameters is enough."""

CLOSE, CLOSE_ENOUGH_NS = 0.5, 2_000_000_000
"""If a statement is faster with the changes, but takes more than CLOSE times as long as before, the
rounds continue up to CLOSE_ENOUGH_NS.
"""

SAME = 0.9
"""A statement that takes at least this many times as long as before does not count as faster."""

MISSING = re.compile(r"no such (table|column): (\S+)")

COPIES = 2
"""The number of copies on the disk at the same time."""


def prove(
    report: Report,
    database: str,
    budget_s: float = BUDGET_S,
    interpreter: str = sys.executable,
    findings: Sequence[Finding] = (),
    judge_of: Callable[[Sequence[str], str], Judge] = start_judge,
) -> Advice:
    """Find indexes that make the recorded statements faster, and rewrites for findings. Measure
    both on a copy.

    The database is only read. Ctrl-C ends the search, and the changes found so far are proved.

    Args:
        budget_s: the time limit. The result is the best advice found within it.
        interpreter: the Python whose SQLite executes the statements.
        judge_of: a function that starts the judge, given the recorded versions of SQLite and the
            interpreter.

    Raises:
        ProofError: the database cannot be copied, or is not the recorded database.
    """
    start_s = time.monotonic()
    path = _database_to_copy(database)
    versions = report.profile.sqlite_versions
    with judge_of(versions, interpreter) as judge:
        _copy_database(judge, path)
        judge.set_deadline(budget_s * SEARCH_SHARE - (time.monotonic() - start_s))
        try:
            schema = read_schema(judge)
        except StatementError as error:
            raise ProofError(why_unreadable(database, str(error))) from error
        if _has_references(judge, report):
            judge.enforce_all_references()
            judge.switch(BEFORE, "foreign_keys", True)
        search = ChangeSearch(judge, schema, _queries_to_prove(report, judge, schema, database))
        every = 1
        is_complete = False
        with contextlib.suppress(OutOfTime, KeyboardInterrupt):
            every = replace_by_sample(judge, read_only_uri(str(path)), schema)
            judge.copy_database(BEFORE, AFTER)
            search.measure_all(is_sample=every > 1)
            search.run()
            is_complete = True
        judge.set_deadline(max(budget_s - (time.monotonic() - start_s), budget_s * 0.1))
        if every > 1:
            with contextlib.suppress(OutOfTime, KeyboardInterrupt):
                judge.rename(WHOLE, BEFORE)
                search.measure_all()
        changes, proofs = _prove_changes(judge, search)
        return Advice(
            database,
            changes,
            search.outweighed(),
            proofs,
            faster_rewrites(search, findings),
            tuple(
                NotMeasured(query.statement, query.ns, search.reasons[query.statement])
                for query in search.all_queries
                if query.statement in search.reasons
            ),
            judge.version,
            "" if judge.version in versions else ", ".join(versions) or "unknown",
            every,
            is_complete and len(proofs) == len(search.queries),
            time.monotonic() - start_s,
        )


def _has_references(judge: Judge, report: Report) -> bool:
    """Return whether the program's connections enforce foreign keys, according to the plans of its
    writes. Recorded PRAGMA statements do not help, because they lack their values.
    """
    for statement, known in plans_by_statement(report.profile.plans).items():
        if verb_of(statement) not in WRITES:
            continue
        trial = StatementTrial(judge, statement)
        with contextlib.suppress(StatementError):
            before = trial.plan()
            judge.switch(EMPTY, "foreign_keys", True)
            after = trial.plan()
            if before not in known and after in known:
                return True
        judge.switch(EMPTY, "foreign_keys", False)
    return False


def _database_to_copy(database: str) -> Path:
    path = Path(database)
    if not path.is_file():
        raise ProofError(f"{database}: no such file")
    free = shutil.disk_usage(tempfile.gettempdir()).free
    needed = COPIES * 2 * path.stat().st_size
    if needed > free:
        raise ProofError(
            f"{database}: copies of it need up to {needed >> 20:,} MB in {tempfile.gettempdir()},"
            f" which has {free >> 20:,} MB: set TMPDIR to a larger place"
        )
    return path.absolute()


def _copy_database(judge: Judge, path: Path) -> None:
    """Copy the database, without changing it or the files next to it."""
    try:
        judge.copy_database(read_only_uri(str(path)), BEFORE)
    except StatementError as error:
        raise ProofError(why_unreadable(str(path), str(error))) from error


def _queries_to_prove(
    report: Report, judge: Judge, schema: DatabaseSchema, database: str
) -> tuple[RecordedStatement, ...]:
    accesses = Accesses(schema)
    try:
        queries = recorded_queries(report, judge, schema, accesses)
    finally:
        accesses.close()
    if not queries:
        raise ProofError(f"{database}: the recording has no statement that reads or writes a table")
    dropped = temporary_tables(one.statement for one in report.profile.aggregates)
    missing = [
        found
        for query in queries
        if (found := MISSING.match(query.reason))
        and found[2].rpartition(".")[2].lower() not in dropped
    ]
    if len(missing) == len(queries):
        names = sorted({f"{found[1]} {found[2]}" for found in missing})
        raise ProofError(
            f"{database}: not the recorded database, or its schema has changed; missing:"
            f" {', '.join(names[:5])}"
        )
    return queries


def _prove_changes(
    judge: Judge, search: ChangeSearch
) -> tuple[tuple[DatabaseChange, ...], tuple[Proof, ...]]:
    """Repeat the chosen changes on a fresh copy, and measure all statements on both copies."""
    made: list[tuple[Step, DatabaseChange]] = []
    proofs: list[Proof] = []
    with contextlib.suppress(OutOfTime, KeyboardInterrupt):
        judge.copy_database(BEFORE, AFTER)
        costs = {query.statement: search.base_ns(query) for query in search.queries}
        # Statistics describe existing indexes, so ANALYZE comes last.
        steps = sorted(search.chosen, key=lambda step: isinstance(step, AnalyzeChange))
        made.extend((step, _make_change(judge, search, step, costs)) for step in steps)
        # Some changes help only together.
        made = [(step, change) for step, change in made if _keep_if_useful(search, step, change)]
        losing = [step for step, change in made if change.win_ns < 0]
        if losing:  # repeat the proof without the changes that lose time
            search.chosen = [step for step in search.chosen if step not in losing]
            return _prove_changes(judge, search)
        proofs.extend(_prove_query(search, query) for query in search.queries)
    # ANALYZE stays last, so that the printed changes can be executed in their order.
    made.sort(key=lambda one: (isinstance(one[0], AnalyzeChange), -one[1].win_ns))
    changes = tuple(change for _, change in made)
    return (
        _scale_savings(changes, proofs) if len(proofs) == len(search.queries) else changes
    ), tuple(proofs)


def _scale_savings(
    changes: tuple[DatabaseChange, ...], proofs: Sequence[Proof]
) -> tuple[DatabaseChange, ...]:
    """Scale the savings of the changes so that they add up to the savings of all statements, which
    were measured after the last change.
    """
    won_ns = sum(proof.recorded_ns - proof.after_ns for proof in proofs) - sum(
        change.inserts * (change.insert_ns or 0.0) for change in changes
    )
    wins_ns = sum(change.win_ns for change in changes)
    if won_ns <= 0 or wins_ns <= 0:
        return changes
    return tuple(replace(change, win_ns=change.win_ns * won_ns / wins_ns) for change in changes)


def _keep_if_useful(search: ChangeSearch, step: Step, change: DatabaseChange) -> bool:
    """Return whether a plan on this copy uses the index or, for ANALYZE, whether time is saved. If
    not, undo the change.
    """
    if isinstance(step, AnalyzeChange):
        is_used = change.win_ns > 0
    else:
        is_used = any(
            has_index(search.plan(query, AFTER), change.index) for query in search.queries
        )
    if not is_used:
        search.undo_change(step)
    return is_used


def _make_change(
    judge: Judge, search: ChangeSearch, step: Step, costs: dict[str, float]
) -> DatabaseChange:
    """Make a change on the copy, and measure its effect. Update `costs`, the time (ns) of each
    statement.
    """
    name = search.name(step)
    bytes_before = judge.used_bytes(AFTER)
    slower_before = (
        search.inserts.extra_insert_ns(step.table)
        if search.inserts.recorded_count(step.table)
        else None
    )
    judge.execute(AFTER, step.sql(name))
    win_ns = 0.0
    for query in search.queries:
        is_user = query.is_write_using({step.table}) or has_index(search.plan(query, AFTER), name)
        if name and not is_user:
            continue
        if not name and search.plan(query, AFTER) == search.plan(query, BEFORE):
            continue
        now_ns = search.cost(query, AFTER)
        win_ns += search.times.saved_ns(query, costs[query.statement], now_ns)
        costs[query.statement] = now_ns
    slower = search.inserts.extra_insert_ns(step.table) if slower_before is not None else None
    lost_ns = None if slower is None or slower_before is None else max(0.0, slower - slower_before)
    inserts = search.inserts.recorded_count(step.table)
    is_analyze = isinstance(step, AnalyzeChange)
    undo = _restore_statistics_sql(search) if is_analyze else f"DROP INDEX {name};"
    return DatabaseChange(
        step.sql(name) + ";",
        undo,
        name,
        step.table,
        win_ns - inserts * (lost_ns or 0.0),
        judge.used_bytes(AFTER) - bytes_before,
        lost_ns,
        inserts,
    )


def _restore_statistics_sql(search: ChangeSearch) -> str:
    """Return the SQL that undoes ANALYZE."""
    rows = [", ".join(map(_quote_value, row)) for row in search.statistics]
    again = (
        f" INSERT INTO sqlite_stat1 VALUES {', '.join(f'({row})' for row in rows)};" if rows else ""
    )
    return "DELETE FROM sqlite_stat1;" + again


def _quote_value(value: object) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def _prove_query(search: ChangeSearch, query: RecordedStatement) -> Proof:
    pairs = []
    for number in range(len(query.samples)):
        pair = _measure_pair(search, query, number)
        if CLOSE * pair[BEFORE].ns < pair[AFTER].ns < SAME * pair[BEFORE].ns:
            pair = search.measured((BEFORE, AFTER), query, number, ROUNDS, CLOSE_ENOUGH_NS)
        pairs.append(pair)
        if pair[BEFORE].ns > LONG_NS:
            break
    before, after = (
        mean_cost([total_cost([pair[copy]]) for pair in pairs]) for copy in (BEFORE, AFTER)
    )
    uses = tuple(
        dict.fromkeys(
            search.name(step)
            for step in search.chosen
            if has_index(search.plan(query, AFTER), search.name(step))
        )
    )
    if not (uses or query.writes) and search.plan(query, BEFORE) == search.plan(query, AFTER):
        after = before  # the measurements differ only by noise
    is_equal = all(pair[BEFORE].digest == pair[AFTER].digest for pair in pairs)
    doubt = "" if is_equal else _row_difference_reason(query, [pair[BEFORE].rows for pair in pairs])
    is_less = is_less_work(before, after)
    if not doubt and after.ns < SAME * before.ns and not is_less:
        doubt = (
            "there are no counters"
            if is_less is None
            else "neither VM steps nor page fetches decreased"
        )
    return Proof(
        query.statement,
        query.executions,
        query.ns,
        before,
        after,
        uses,
        after.ns < SAME * before.ns and not doubt,
        doubt,
        query.samples[0].is_drawn,
    )


def _measure_pair(
    search: ChangeSearch, query: RecordedStatement, number: int
) -> dict[str, Measurement]:
    """Measure a sample on both copies by turns. If the sample was slow in the search, and takes
    less than half of the time with the changes, do not execute it again without the changes.
    """
    known = search.base[query.statement][number : number + 1]
    if known and known[0].ns > SLOW_NS:
        after = search.measured((AFTER,), query, number, ROUNDS, ENOUGH_NS)[AFTER]
        if after.ns < CLOSE * known[0].ns:
            return {BEFORE: known[0], AFTER: after}
    return search.measured((BEFORE, AFTER), query, number, ROUNDS, ENOUGH_NS)


def _row_difference_reason(query: RecordedStatement, rows: Sequence[int]) -> str:
    """Return why the rows may differ. Often, the ORDER BY does not distinguish some rows."""
    if clauses_of(query.statement).limits:
        return "the rows differ: ORDER BY does not fix which rows come before the LIMIT"
    if any(read == one.most_rows for read, one in zip(rows, query.samples, strict=False)):
        stops = "may stop" if query.samples[0].is_drawn else "stops"
        return (
            f"the rows differ: the program {stops} reading early, and no ORDER BY fixes which rows"
            " come first"
        )
    return "the rows differ"
