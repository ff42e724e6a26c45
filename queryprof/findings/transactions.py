"""Findings about too many transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from queryprof.analysis.call_sites import Function
from queryprof.analysis.units import average, counted, duration
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import GroupsByFunction, StatementGroup
from queryprof.findings.libraries import EXPIRES
from queryprof.findings.maintenance import NEVER_IN_ONE
from queryprof.findings.one_transaction import (
    BY_ITSELF,
    MEANWHILE,
    locked_rows_doubt,
    loop_commits_fix,
    own_transactions_fix,
)
from queryprof.findings.program import Program
from queryprof.findings.recorded import HEAVY_SHARE, MAX_NEAR
from queryprof.findings.whole import PROGRAM_BUSY_TIME
from queryprof.model import Frame
from queryprof.sql.clauses import is_checkpoint
from queryprof.sql.tokens import tokens_of

FEW, MIN_HEAVY_TRANSACTIONS = 20, 5
"""Fewest transactions to report. The second limit applies if they take HEAVY_SHARE of the time."""

MAX_WRITES_PER_SPAN = 2
"""With at most this many writes per span, the writes are not in a loop."""

MAX_WRITES_OF_INNER_TRANSACTION = 5
"""Up to this number of executions per transaction, the transaction is inside the loop."""

BATCH_ROWS = 500
"""At this many rows or more, a write is a batch. A commit costs as much as a few hundred rows
(sqlite3_commits).
"""

MIN_COMMITS_PER_WRITE = 0.8
"""At this many commits per write or more, each write has a commit of its own."""

NEAR_FRAMES = 2
"""A statement and its commit are near if they share one of this many innermost functions."""

MOVE_WAITS_OUT = (
    "The program mostly waits between these writes. Keep slow work out of the transaction. A"
    " rollback does not undo effects outside the database."
)
CLAIMS = (
    "The loop may claim jobs that other workers must see as taken. Then each claim needs its own"
    " commit."
)


@dataclass(frozen=True, slots=True)
class _Commits:
    """The commits of a statement's writes.

    Attributes:
        number: commits that one transaction would save.
        words: the number of commits, as a part of a sentence.
        doubt: why the program may need the commits.
    """

    cost_ns: float
    number: int
    words: str
    fix: str
    doubt: str = ""
    most: Severity = Severity.HIGH


def find_commit_per_write(program: Program) -> Iterator[Finding | None]:
    known: set[frozenset[object]] = set()
    by_function = changes_by_function(program)
    checkpoints = sum(g.totals.executions for g in program.all_groups if is_checkpoint(g.statement))
    for group in program.all_groups:  # a write may be quick and its commit slow
        writes = _write_count(group)
        if not group.writes or writes < MIN_HEAVY_TRANSACTIONS:
            continue
        executemanys = group.calls_by_operation.get("executemany", 0)
        own = program.own_transaction_count(group)
        is_known = own >= max(FEW, 2 * executemanys)
        number = own if is_known and own < MIN_COMMITS_PER_WRITE * writes else writes
        if _has_few_per_span(program, group, number):
            continue  # each request is a transaction, as it should be
        commits = commits_of(program, group, by_function)
        committed = sum(one.totals.executions for one in commits)
        # Locks are not always known. A write that exceeds the cache also syncs before its commit.
        has_own = is_known or (group.files.syncs >= MIN_COMMITS_PER_WRITE * writes > committed)
        if has_own:
            found = _commits_per_write(program, group, number, bool(committed))
        elif commits and not executemanys:
            places = frozenset((g.statement, g.site.frame) for g in commits)
            if places in known:  # another statement has the same commits
                continue
            known.add(places)
            found = _shared_commits(program, group, commits, by_function)
        else:
            continue
        # A transaction belongs to one file (or to several ATTACHed ones).
        files = program.database_file_count([group.statement])
        # The commit that follows a checkpoint syncs the log only because of the checkpoint.
        if 2 * max(files, checkpoints) > found.number or not _has_many_transactions(
            program, found.number, found.cost_ns
        ):
            continue
        synced = [one.files for one in (group, *(() if has_own else commits))]
        syncs, sync_ns = sum(one.syncs for one in synced), sum(one.sync_ns for one in synced)
        evidence, fix = [f"{counted(writes, 'write')}, {found.words}"], found.fix
        if syncs:
            evidence.append(f"{counted(syncs, 'file sync')} took {duration(sync_ns)}")
        if not has_own and found.cost_ns > 2 * sum(g.work_ns for g in commits):
            evidence += _slowest_commit_note(commits)
            fix += EXPIRES.get(program.library(group.statement), "")
        is_synced = sync_ns >= found.cost_ns / 4 and not executemanys and 2 * syncs >= found.number
        against = _job_claim_doubt(program, group, by_function) or locked_rows_doubt(program, group)
        waits = _waits_between_writes(program, group)
        yield program.make_finding(
            "commit_per_write",
            group,
            found.cost_ns * (1 - max(1, files) / found.number),
            tuple(evidence),
            fix + BY_ITSELF * is_synced,
            program.innermost_loop(group),
            doubt=against or found.doubt or MOVE_WAITS_OUT * waits,
            most=Severity.LOW if against or waits else found.most,
        )


def _commits_per_write(
    program: Program, group: StatementGroup, number: int, has_others: bool
) -> _Commits:
    """Return the commits of writes that are transactions of their own."""
    # A checkpoint also syncs a write-ahead log, once per thousand pages, in a single transaction.
    is_each_synced = 2 * group.files.syncs >= number
    alone = "" if has_others else " (no BEGIN)"
    return _Commits(
        group.files.sync_ns * is_each_synced + group.files.write_ns,
        number,
        (
            f"each in its own transaction{alone}"
            if number == _write_count(group)
            else f"{counted(number, 'separate transaction')}{alone}"
        ),
        own_transactions_fix(program, group),
    )


def _shared_commits(
    program: Program,
    group: StatementGroup,
    commits: Sequence[StatementGroup],
    by_function: GroupsByFunction,
) -> _Commits:
    """Return the commits that follow a group's writes in the program."""
    committed = sum(one.totals.executions for one in commits)
    cost_ns = sum(g.work_ns for g in commits)
    cost_ns = max(cost_ns, round(sum(g.cost_ns for g in commits if g.line_ns)))
    all_writes = _writes_in_commits(program, commits, by_function)
    own = max(_write_count(group), 1)
    doubt, most = _multiple_writes_doubt(all_writes / committed, group.totals.rows / own)
    return _Commits(
        cost_ns,
        min(committed, all_writes),  # further writes have no commit
        f"{counted(committed, 'commit')}{' (also of other writes)' * (2 * committed > 3 * own)}",
        loop_commits_fix(program, group, commits),
        doubt,
        most,
    )


def _waits_between_writes(program: Program, group: StatementGroup) -> bool:
    """Return whether the program waits between the writes, so that one transaction around the loop
    would block other connections.
    """
    loop = program.innermost_loop(group)
    sleeps = loop is not None and loop.frame is not None and program.lines.loop_sleeps(loop.frame)
    return program.whole == PROGRAM_BUSY_TIME or sleeps


def _slowest_commit_note(commits: Sequence[StatementGroup]) -> Iterator[str]:
    """Return a sentence about the line of the slowest commit, if it was timed."""
    timed = (one for one in commits if one.total_line_ns > one.work_ns)  # awaited lines take less
    slowest = max(timed, key=lambda one: one.cost_ns, default=None)
    if slowest:
        yield (
            f"the line of the commit takes {duration(slowest.line_ns)} each time, of which the"
            f" driver takes {duration(slowest.work_ns / max(1, slowest.totals.executions))}"
        )


def commits_of(
    program: Program, group: StatementGroup, by_function: GroupsByFunction
) -> list[StatementGroup]:
    """Return the commits of a statement's transactions. A commit belongs to a statement if both run
    in the same iteration of a loop. If no loop is known, both must be in the same function or its
    caller, with about as many commits as writes.

    Args:
        by_function: writes and commits, by the functions on their paths.
    """
    found = filter(_is_commit, changes_sharing_functions(program, [group], by_function))
    verdicts = [(commit, _in_same_pass(program, group, commit)) for commit in found]
    commits = _nonempty_commits([commit for commit, is_with in verdicts if is_with])
    if commits:
        return commits
    perhaps = _nonempty_commits([commit for commit, is_with in verdicts if is_with is None])
    committed = sum(one.totals.executions for one in perhaps)
    is_each = committed >= MIN_COMMITS_PER_WRITE * _writes_in_commits(program, perhaps, by_function)
    return perhaps if is_each else []


def _nonempty_commits(commits: list[StatementGroup]) -> list[StatementGroup]:
    """Return the commits that have something to commit. An empty commit does no file work."""
    return [
        one for one in commits if one.files.calls >= MIN_COMMITS_PER_WRITE * one.totals.executions
    ] or commits


def changes_by_function(program: Program) -> GroupsByFunction:
    """Return all writes and commits by each function on their paths."""
    found: dict[Function, list[StatementGroup]] = {}
    for group in program.all_groups:
        if group.writes or _is_commit(group):
            for function in _functions_on_paths(program, group):
                found.setdefault(function, []).append(group)
    return found


def _functions_on_paths(program: Program, group: StatementGroup) -> set[Function]:
    return {(frame.file, frame.function) for frame in program.path_inside_request(group)}


def changes_sharing_functions(
    program: Program, groups: Sequence[StatementGroup], by_function: GroupsByFunction
) -> list[StatementGroup]:
    """Return the writes and commits whose call paths share a function with one of the groups, at
    most MAX_NEAR for each function.
    """
    functions = {function for group in groups for function in _functions_on_paths(program, group)}
    return list(
        {
            id(one): one
            for function in functions
            for one in by_function.get(function, ())[:MAX_NEAR]
        }.values()
    )


def _in_same_pass(program: Program, group: StatementGroup, commit: StatementGroup) -> bool | None:
    """Return whether a statement and a commit run in the same iteration of a loop; None if no loop
    is known but both are in the same function or in the caller.
    """
    ours, theirs = program.path_inside_request(group), program.path_inside_request(commit)
    functions = [(frame.file, frame.function) for frame in theirs]
    depths = [i for i, frame in enumerate(ours) if (frame.file, frame.function) in functions]
    if not depths:
        return False
    first, second = depths[0], functions.index((ours[depths[0]].file, ours[depths[0]].function))
    if any(program.loop_around(commit, depth) for depth in range(second)):
        return False  # the commits are in a loop without the statement
    is_near = first < NEAR_FRAMES and second < NEAR_FRAMES
    while first < len(ours) and second < len(theirs):
        if (ours[first].file, ours[first].function) != functions[second]:
            break
        loop = program.loop_around(commit, second)
        if loop:
            return _is_inner_loop(program, program.loop_around(group, first), loop)
        first, second = first + 1, second + 1
    return None if is_near else False


def _is_inner_loop(program: Program, inner: Frame | None, outer: Frame) -> bool:
    """Return whether the inner loop is the outer loop, or runs inside it."""
    seen: set[Frame] = set()
    while inner and inner not in seen:
        if inner == outer:
            return True
        seen.add(inner)
        inner = program.loop_at(inner, "")
    return False


def _writes_in_commits(
    program: Program, commits: Sequence[StatementGroup], by_function: GroupsByFunction
) -> int:
    """Return the number of writes in the transactions of some commits."""
    return sum(
        one.calls_by_operation.get("executemany", 0)
        or _write_count(one)  # each executemany() call is one write here
        for one in changes_sharing_functions(program, commits, by_function)
        if one.writes
        and any(_in_same_pass(program, one, commit) is not False for commit in commits)
    )


def has_own_commits(program: Program, group: StatementGroup) -> bool:
    """Return whether a statement's transactions are small: each contains only a few of the
    statement's executions.
    """
    commits = commits_of(program, group, changes_by_function(program))
    committed = sum(one.totals.executions for one in commits)
    own = max(committed, program.own_transaction_count(group), group.files.syncs)
    return MAX_WRITES_OF_INNER_TRANSACTION * own >= _write_count(group)


def _has_many_transactions(program: Program, transactions: int, cost_ns: float) -> bool:
    least = MIN_HEAVY_TRANSACTIONS if cost_ns >= HEAVY_SHARE * program.run_ns else FEW
    return transactions >= least


def find_separate_transactions(program: Program) -> Iterator[Finding | None]:
    """Find statements of one function that each run in their own transaction, but are too few to be
    found individually. Such statements create tables, or write to several tables.
    """
    for groups in program.by_function.values():
        alone = [
            group
            for group in groups
            if not (group.reads or _is_commit(group) or group.verb in NEVER_IN_ONE)
            and 0 < _write_count(group) < MIN_HEAVY_TRANSACTIONS
            and group.files.syncs >= MIN_COMMITS_PER_WRITE * _write_count(group)
        ]
        number, syncs = sum(map(_write_count, alone)), sum(group.files.syncs for group in alone)
        sync_ns = sum(group.files.sync_ns for group in alone)
        cost_ns = sync_ns + sum(group.files.write_ns for group in alone)
        if not _has_many_transactions(program, number, cost_ns):
            continue
        most = max(alone, key=lambda group: group.self_ns)
        if _has_few_per_span(program, most, number):
            continue
        yield program.make_finding(
            "commit_per_write",
            most,
            cost_ns * (1 - 1 / number),
            (
                (
                    f"{counted(len(alone), 'statement')} in this function,"
                    f" {counted(number, 'execution')}"
                ),
                "each execution is its own transaction (no BEGIN)",
                f"{counted(syncs, 'file sync')} took {duration(sync_ns)}",
            ),
            "Put one transaction around these statements: BEGIN before the first, COMMIT after the"
            f" last. {MEANWHILE}",
            program.innermost_loop(most),
        )


def _job_claim_doubt(program: Program, group: StatementGroup, by_function: GroupsByFunction) -> str:
    """Return the doubt if a write of the loop claims the first of some rows; or ""."""
    near = (one for one in changes_sharing_functions(program, [group], by_function) if one.writes)
    words = ({token.keyword for token in tokens_of(one.statement)} for one in near)
    is_change = group.verb != "INSERT"
    return CLAIMS * any({"LIMIT", "RETURNING"} <= one for one in words if is_change)


def _multiple_writes_doubt(writes_each: float, rows_each: float) -> tuple[str, Severity]:
    """Return the doubt about commits with this many writes and rows, and the highest severity."""
    if rows_each >= BATCH_ROWS:
        return (
            f"Each commit has {average(rows_each)} rows; other connections can write in between.",
            Severity.LOW,
        )
    if writes_each <= 1.5:
        return "", Severity.HIGH
    return (
        (
            f"Each transaction has about {average(writes_each)} writes. If each group of writes"
            " must be saved by itself, keep the separate transactions."
        ),
        Severity.LOW if writes_each > MAX_WRITES_OF_INNER_TRANSACTION else Severity.MEDIUM,
    )


def _has_few_per_span(program: Program, group: StatementGroup, writes: int) -> bool:
    """Return whether a group has few writes per span, averaged over all spans of the same names."""
    names = {member.span for member in group.members}
    spans = sum(found.span.count for found in program.report.spans if found.span.name in names)
    return group.executions_outside_spans < FEW and writes <= MAX_WRITES_PER_SPAN * spans


def _write_count(group: StatementGroup) -> int:
    """Return the number of successful executions. For executemany(), each row counts."""
    if group.calls_by_operation.get("executemany"):
        return group.rows
    return max(0, group.totals.executions - group.totals.errors)


def _is_commit(group: StatementGroup) -> bool:
    """Return whether the group's statement commits. A RELEASE outside a transaction also commits:
    it then syncs or writes files.
    """
    if group.verb == "RELEASE":
        return group.files.calls >= MIN_COMMITS_PER_WRITE * group.totals.executions
    return "commit" in group.calls_by_operation or group.verb in ("COMMIT", "END")
