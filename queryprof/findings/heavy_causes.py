"""Causes of heavy statements that no counter of SQLite shows: the page cache, functions of the
program, and waits in a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, takewhile

from queryprof.analysis.units import duration, format_bytes, percent
from queryprof.findings.aggregates import returns_only_a_count
from queryprof.findings.finding import Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.findings.scan_words import CALLED
from queryprof.operations import STATEMENT_OPERATIONS
from queryprof.sql.clauses import tables_by_alias
from queryprof.sql.tokens import tokens_of

FEW = 20
"""The fewest executions or rows for a cause that repeats with each execution or row."""

SPILLED = 0.2
"""Pages that do not fit in the cache are a cause if their I/O takes at least this share of the
statement's time.
"""

SPILLED_BYTES = 10_000_000
"""The pages of a statement may fit in the cache if a query reads fewer bytes than this, or a write
reads or writes fewer bytes. The cache has 2 MB by default.
"""

BIGGER_CACHE = (
    "SQLite's page cache is too small for the statement's pages. Enlarge it (PRAGMA cache_size ="
    " -200000 is 200 MB), or write the rows in key order."
)

BIGGER_CACHE_TO_READ = (
    "The pages do not stay in SQLite's page cache. Enlarge the cache (PRAGMA cache_size = -200000"
    " is 200 MB), and keep the connection open. A write on another connection also empties the"
    " cache."
)

FEW_READS = 5

SERVERS = frozenset({"postgresql", "mysql", "oracle"})
"""Database systems with locks on single rows."""

FEW_ROWS = 2
"""Finding up to this many rows takes as long as finding a single row."""

LONG_WRITE_NS = 5_000_000
"""An execution of this time is slow. A server finds a row by its key in 0.1 to 1 ms, and a commit
takes a little more.
"""

ROW_LOCKS = (
    "The executions may wait for each other: a transaction locks the rows that it changed until its"
    " COMMIT. Do slow work (calls, files, rendering) before the first change, or after COMMIT."
)
NOT_RECORDED = "The recording does not show what the server does."

SLOW_TO_FASTEST_RATIO = 10
"""Some executions wait if the mean execution takes at least this many times as long as the fastest.
With a missing index, the fastest of 50 executions took 0.6 to 0.9 of the mean (PostgreSQL 15, two
programs).
"""

LOCKING = frozenset(("FOR", word) for word in ("UPDATE", "SHARE", "NO", "KEY"))
"""The words that begin a locking clause (https://www.postgresql.org/docs/current/sql-select.html).
"""

NO_PLAN = (
    "A server finds a row by an index in less than 1 ms. An index on the compared columns may be"
    " missing, or {other}."
)
READ_PLAN = " --dsn reads the plan."
OTHER_REASON_BY_VERB = {
    "SELECT": "the values may have another type than the column (Decimal instead of int)",
    "UPDATE": "a trigger may scan a table",
    "DELETE": "the columns that refer to this table may have no index",
}
OTHER_TYPE = (
    "The server's plan searches an index, which does not take this long. Check the types of the"
    " values: a Decimal or float for an integer column makes PostgreSQL read the whole table."
)


@dataclass(frozen=True, slots=True)
class HeavyStatementCause:
    """Why a statement is heavy.

    Attributes:
        gain_ns: the time that the fix may save.
        evidence: at most one sentence.
    """

    fix: str
    gain_ns: int
    evidence: tuple[str, ...] = ()
    doubt: str = "The program may need all of this work."
    category: str = "heavy_query"
    most: Severity = Severity.MEDIUM


def cause_of_heavy_statement(program: Program, group: StatementGroup) -> HeavyStatementCause | None:
    """Return the cause of a heavy statement; None if the cause is unknown."""
    waits = _single_row_writes_note(program, group) or _row_lock_note(program, group)
    if waits:
        gain_ns = group.work_ns // max(1, group.threads)  # the threads wait at the same time
        return HeavyStatementCause(ROW_LOCKS, gain_ns, waits, NOT_RECORDED, "lock_wait")
    if is_slow_on_server(program, group):
        return HeavyStatementCause(
            _slow_statement_note(program, group), group.work_ns, (), NOT_RECORDED
        )
    called = _program_function_called(program, group)
    if called:
        return HeavyStatementCause(CALLED.format(name=called), group.work_ns)
    repeated = _repeated_work(group) or _compound_cause(group)
    if repeated:
        return repeated
    spilled = _spill_note(group) or _rereading_note(group)
    if spilled:
        fix = BIGGER_CACHE if group.writes else BIGGER_CACHE_TO_READ
        return HeavyStatementCause(fix, group.files.read_ns + group.files.write_ns, spilled)
    return None


def _repeated_work(group: StatementGroup) -> HeavyStatementCause | None:
    """Return the cause of a statement that computes the same rows in each execution; None if it
    does not.
    """
    view, is_count = view_computed_whole(group), _counts_whole_table(group)
    if not (view or is_count):
        return None
    gain_ns = round(group.work_ns * (1 - 1 / group.totals.executions))
    said = WHOLE_VIEW.format(view=view) if view else WHOLE_COUNT
    return HeavyStatementCause(VIEW_FIX if view else COUNT_FIX, gain_ns, (said,))


UNION_SHARE = 0.55
"""The share of a UNION's time that UNION ALL saves. It was 0.36 to 0.97 for two tables of 5,000 and
60,000 rows with texts of 10 to 1,000 characters, returned or added up (SQLite 3.40).
"""

UNION = "UNION compares all columns of its rows, to return equal rows once"
UNION_FIX = "If no two of these rows can be equal, write UNION ALL."
RECURSION = (
    "the recursive part uses UNION ALL, so a row that several paths reach is computed once per path"
)
RECURSION_FIX = (
    "If several paths may reach the same row, write UNION in place of UNION ALL, and select only"
    " the key in the recursive query. SQLite then computes each row once."
)
IN_A_TREE = "In a tree, one path reaches each row, and UNION saves nothing."


def _compound_cause(group: StatementGroup) -> HeavyStatementCause | None:
    """Return the cause of a slow UNION, or of a recursion with UNION ALL; None if there is none."""
    words = [one.keyword for one in tokens_of(group.statement)]
    unions = [after == "ALL" for one, after in pairwise(words) if one == "UNION"]
    if not unions or (group.totals.vm_steps or 0.0) < STEPS_PER_ROW:
        return None
    if all(unions):
        if not _joins_in_recursion(group):
            return None
        return HeavyStatementCause(
            RECURSION_FIX, group.work_ns, (RECURSION,), IN_A_TREE, most=Severity.LOW
        )
    if "RECURSIVE" in words:
        return None
    return HeavyStatementCause(UNION_FIX, round(UNION_SHARE * group.work_ns), (UNION,))


def _joins_in_recursion(group: StatementGroup) -> bool:
    """Return whether a recursive part looks up rows of a table instead of counting numbers."""
    for plan in group.plans:
        step = next((one for one in plan if one.strip() == "RECURSIVE STEP"), None)
        if step is None:
            continue
        indent = step[: -len(step.strip())] + " "
        inner = takewhile(lambda one: one.startswith(indent), plan[plan.index(step) + 1 :])  # noqa: B023
        if sum(one.strip().startswith(("SCAN ", "SEARCH ")) for one in inner) > 1:
            return True
    return False


COUNTED_PAGES = 20
"""Counting the rows in fewer pages is fast: a page takes 3 us, and a sqlite3 call 5.4 us."""

WHOLE_COUNT = "count(*) without WHERE reads each page of a table or of an index"
COUNT_FIX = (
    "Keep the number instead of counting again: in a column that a trigger updates, or in the"
    " program. To notice new rows, ask for max(rowid), which reads one row."
)


def _counts_whole_table(group: StatementGroup) -> bool:
    """Return whether a statement counts all rows of a table several times."""
    totals = group.totals
    is_again = totals.executions >= FEW_LOOKUPS
    is_long = (totals.page_fetches or 0.0) >= COUNTED_PAGES
    scans = [step for plan in group.plans for step in plan]
    is_one = len(scans) == len(group.plans) and all(one.startswith("SCAN ") for one in scans)
    has_condition = any(one.keyword == "WHERE" for one in tokens_of(group.statement))
    is_count = returns_only_a_count(group.statement)
    return is_again and is_long and bool(scans) and is_one and is_count and not has_condition


FEW_LOOKUPS = 5
STEPS_PER_ROW = 1_000
"""With at least this many VM steps per returned row (6 ns each), most of the work is in vain. A
view of 5,000 groups took 680,000 steps for one row.
"""

WHOLE_VIEW = (
    "each execution computes all rows of {view}, and then keeps those that match the condition"
)
VIEW_FIX = (
    "Query the view's tables directly, with the condition in that query. Or store the view's rows"
    " once in a table with an index."
)


def view_computed_whole(group: StatementGroup) -> str:
    """Return words for the view whose rows SQLite computes again in each search, or "".

    SQLite cannot move a condition into a view with LIMIT, nor into a view with a window function
    unless the condition is on a PARTITION BY column
    (https://www.sqlite.org/optoverview.html#the_where_clause_push_down_optimization).
    """
    totals, words = group.totals, [one.keyword for one in tokens_of(group.statement)]
    is_lookup = totals.executions >= FEW_LOOKUPS and "WHERE" in words
    is_vain = (totals.vm_steps or 0.0) >= STEPS_PER_ROW * max(1.0, totals.rows_each or 0.0)
    if not group.reads or not is_lookup or not is_vain or words.count("SELECT") > 1:
        return ""
    outer = [step.split() for plan in group.plans for step in plan if step[:1] != " "]
    steps = [words for words in outer if len(words) > 1]  # untrusted steps may have one word
    computed = {words[-1] for words in steps if words[0] in ("CO-ROUTINE", "MATERIALIZE")}
    aliases = tables_by_alias(group.statement)
    scanned = [words[1] for words in steps if words[0] == "SCAN"]
    names = [name for one in scanned for name in (one, aliases.get(one.lower(), ""))]
    found = next((name for name in names if name in computed), "")
    return "a view" if found.startswith("(") else f"the view {found}" if found else ""


STEP_NS, FETCH_NS = 1_200, 3_000
"""The longest time of a VM step, and of a page fetch (covering.py). Twenty kinds of statements took
49 to 1,217 ns per step on a busy machine: scans, sorts, groups, JSON, full-text, writes.
"""

EXPLAINED = 1 / 3
"""If SQLite's own work explains a smaller share of the time, other code took the rest."""

MAX_CALLBACKS = 4
"""Number of places to list where the program gives a function to its driver."""


def python_calls_evidence(program: Program, group: StatementGroup) -> tuple[str, ...]:
    """Return python_calls_note() as evidence for another finding about the statement."""
    note = python_calls_note(program, group)
    return (note,) if note else ()


def python_calls_note(program: Program, group: StatementGroup) -> str:
    """Return a sentence if the driver must have called Python code, such as a generator that
    executemany() consumes, or a converter; "" otherwise. Threads that waited for each other or for
    the CPU also explain a long time, and SQLite does not count the work of virtual tables, such as
    full-text search. The result is "" in these cases. If there are many executions, the median time
    is used for each, because on a busy machine a few executions wait for the CPU.
    """
    totals, files = group.totals, group.files
    own = {member.thread for member in group.members}
    ran_ns = {one.thread: one.user_ns + one.system_ns for one in program.profile.thread_usage}
    is_waiting = sum(ns for thread, ns in ran_ns.items() if thread in own) < group.work_ns / 2
    is_virtual = any("VIRTUAL TABLE" in step for plan in group.plans for step in plan)
    if not totals.counted or is_waiting or is_virtual or len(own) > 1:
        return ""
    fetched = STEP_NS * (totals.vm_steps or 0.0) + FETCH_NS * (totals.page_fetches or 0.0)
    most_ns = fetched * totals.executions + files.read_ns + files.write_ns + files.sync_ns
    is_steady = totals.executions < FEW or not totals.p50_ns
    taken_ns = group.work_ns if is_steady else min(group.work_ns, group.total_median_ns)
    if most_ns >= EXPLAINED * taken_ns:
        return ""
    callbacks = program.lines.driver_callbacks()[:MAX_CALLBACKS]
    code = ", ".join(callbacks) or (
        "an iterator given to executemany(), a converter, row_factory, function, collation or"
        " progress handler"
    )
    return (
        f"SQLite's own work explains at most {duration(most_ns)}. The rest is Python code that"
        f" the driver calls ({code}), or the work on large values. Record with --cprofile to see"
        " the functions."
    )


def _program_function_called(program: Program, group: StatementGroup) -> str:
    """Return a function of the program that a query calls for many rows; "" if there is none."""
    index_help = program.index_help(group) if group.reads and group.work_ns else None
    rows = max(group.totals.rows_each or 0.0, group.totals.full_scan_steps or 0.0)
    return index_help.functions[0] if index_help and index_help.functions and rows >= FEW else ""


def _single_row_writes_note(program: Program, group: StatementGroup) -> tuple[str, ...]:
    """Return a sentence if concurrent writes of single rows take long in a server's database."""
    system = program.report.profile.systems.get(group.statement, "")
    runs = group.totals.executions
    each_ns = group.work_ns / max(1, runs)
    is_of_rows = group.writes and runs >= FEW and group.rows <= 2 * runs
    if system not in SERVERS or not is_of_rows or each_ns < LONG_WRITE_NS:
        return ()
    if group.threads < 2 and not group.overlaps:
        return ()
    writers = "threads" if group.threads > 1 else "tasks"
    return (f"concurrent {writers} change single rows with this statement",)


def _row_lock_note(program: Program, group: StatementGroup) -> tuple[str, ...]:
    """Return a sentence if a statement that locks rows on a server is slow only sometimes. A
    missing index would make each execution slow.
    """
    if not is_slow_on_server(program, group) or not _locks_rows(group):
        return ()
    members = [one for one in group.members if one.operation in STATEMENT_OPERATIONS]
    shortest_ns = min((one.min_ns for one in members), default=0)
    each_ns = group.work_ns / max(1, group.totals.executions)
    if shortest_ns * SLOW_TO_FASTEST_RATIO > each_ns:
        return ()
    return (
        (
            f"the fastest execution took {duration(shortest_ns)}, so a missing index is unlikely to"
            " be the cause"
        ),
    )


def _locks_rows(group: StatementGroup) -> bool:
    """Return whether a statement locks the rows that it finds: UPDATE, DELETE, SELECT ... FOR
    UPDATE.
    """
    words = [token.keyword or token.text.upper() for token in tokens_of(group.statement)]
    return group.verb in ("UPDATE", "DELETE") or not LOCKING.isdisjoint(pairwise(words))


def is_slow_on_server(program: Program, group: StatementGroup) -> bool:
    """Return whether a server takes long for each execution and each row of a statement."""
    runs = group.totals.executions
    is_server = program.report.profile.systems.get(group.statement, "") in SERVERS
    is_slow = group.work_ns >= LONG_WRITE_NS * max(runs, group.rows / FEW_ROWS) > 0
    return is_server and is_slow and group.verb in OTHER_REASON_BY_VERB


def _slow_statement_note(program: Program, group: StatementGroup) -> str:
    plan = program.server.plans.get(group.statement)
    if group.reads and plan and not plan.scans:
        return OTHER_TYPE
    return NO_PLAN.format(other=OTHER_REASON_BY_VERB[group.verb]) + READ_PLAN * (plan is None)


def _rereading_note(group: StatementGroup) -> tuple[str, ...]:
    """Return a sentence if a query reads pages from the file in each execution."""
    files, runs = group.files, group.totals.executions
    is_much = files.read_ns >= SPILLED * group.work_ns
    is_again = runs >= FEW_READS and files.read_bytes >= SPILLED_BYTES
    if not (group.reads and is_much and is_again):
        return ()
    return (
        (
            f"each execution reads {format_bytes(files.read_bytes / runs)} from the file; these"
            " reads"
            f" take {percent(files.read_ns / max(1, group.work_ns))} of the statement's time"
        ),
    )


def _spill_note(group: StatementGroup) -> tuple[str, ...]:
    """Return a sentence if a write reads and writes pages repeatedly before its commit."""
    files = group.files
    moved_ns = files.read_ns + files.write_ns
    is_much = moved_ns >= max(SPILLED * group.work_ns, 2 * files.sync_ns)
    is_both = min(files.read_bytes, files.written_bytes) >= SPILLED_BYTES
    if not (group.writes and is_much and is_both):
        return ()
    return (
        (
            f"before the commit, the statement read {format_bytes(files.read_bytes)} and wrote"
            f" {format_bytes(files.written_bytes)}, which took"
            f" {percent(moved_ns / max(1, group.work_ns))} of its time"
        ),
    )
