"""A library's own work around a statement, if it is unusually long or takes much of the time."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import counted, duration
from queryprof.findings.finding import UNKNOWN_FAULT, Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.large_values import LARGE_ROW_FETCHES
from queryprof.findings.line_words import line_and_driver_in_words
from queryprof.findings.program import Program
from queryprof.findings.rewritten_tables import rewritten_table
from queryprof.sql.tokens import tokens_of

USUAL_NS = {"sqlalchemy": 215_000}
"""The usual time of a line that reads an object by its key, by library (docs/cost.md)."""

MIN_CPU = 0.8
"""If the threads computed for a smaller share of the line's time, they waited for a processor."""

MIN_FACTOR = 10
"""Work that takes this many times the usual time is unusual even on a slow machine."""

ROW_NS = 13_000
"""The time to create an object from a row: 11 to 13 us with SQLAlchemy 2.1 and three columns, in
queries of 10 and 100 rows on a busy machine.
"""

CHECKS = {
    "sqlalchemy": (
        "Check that echo=True is off, that no listener or logger runs for each statement, and that"
        " your own types set cache_ok = True"
    ),
}
"""What to check, by library (https://docs.sqlalchemy.org/en/20/faq/performance.html)."""

NAMED_SHARE = 0.20
"""Lines with at least this share of the time are reported even if no fault is known."""

CALL_FIXES = {
    "_execute_insert_multi": (
        '`to_sql(method="multi")` builds one statement with a parameter for each value, and'
        " SQLAlchemy compiles it for each chunk. Leave out `method`: pandas then inserts all rows"
        " with executemany()."
    ),
}
"""The fix for a library function that works long around its statement."""


def find_slow_library_calls(program: Program) -> Iterator[Finding | None]:
    """Find lines that take much of the time in a library and little in the database, and that no
    other rule explains.
    """
    for group in program.groups:
        library = program.timed_library(group.statement)
        own_ns = group.cost_ns - group.steady_ns - group.handed_ns
        if not library or group.line_ns is None or own_ns < group.work_ns:
            continue
        if program.share_of(group, own_ns) < NAMED_SHARE or program.belongs_to_other_call(group):
            continue
        runs = max(1, group.totals.statement_executions)
        calls = {frame.function.rpartition(".")[2] for frame in program.library_frames(group)}
        rewritten = rewritten_table(program, group)
        fix = next((CALL_FIXES[one] for one in CALL_FIXES if one in calls), "")
        fix = rewritten.fix if rewritten else fix
        yield program.make_finding(
            "heavy_query",
            group,
            own_ns,
            (
                f"{counted(runs, 'execution')}; {line_and_driver_in_words(group)}",
                *(rewritten.evidence if rewritten else ()),
            ),
            fix
            or f"{UNKNOWN_FAULT} {library} and the code it calls take most of the time. Record with"
            " --cprofile to see the functions.",
            program.innermost_loop(group),
            doubt=rewritten.doubt if rewritten else "",
            most=Severity.MEDIUM if fix else Severity.LOW,
        )


def unusual_library_work(program: Program, group: StatementGroup) -> Iterator[str]:
    """Yield a sentence if a library works much longer than usual for each execution."""
    library = program.library(group.statement)
    usual_ns = USUAL_NS.get(library)
    if usual_ns is None or group.line_ns is None or program.other_reads_of_line(group):
        return
    runs = max(1, group.totals.statement_executions)
    if _reads_large_values(group) or not _is_simple(group.statement):
        return
    own_ns = (group.cost_ns - group.steady_ns - group.handed_ns) / runs
    usual_ns += round(ROW_NS * (group.totals.rows_each or 0.0))
    if own_ns * _processor_share(program, group) >= MIN_FACTOR * usual_ns:
        yield (
            f"SQLAlchemy and the code it calls take {duration(own_ns)} of the line's time"
            f" ({duration(usual_ns)} is usual). {CHECKS[library]}"
        )


def _reads_large_values(group: StatementGroup) -> bool:
    """Return whether rows have values on overflow pages, which a type may decode (JSON)."""
    totals = group.totals
    rows = max(1.0, totals.rows_each or 0.0)
    return (totals.page_fetches or 0.0) >= LARGE_ROW_FETCHES * rows


def _is_simple(statement: str) -> bool:
    """Return whether a statement reads one table with few conditions."""
    words = [token.keyword for token in tokens_of(statement)]
    return words.count("SELECT") == 1 and not {"JOIN", "OR", "IN"} & {*words}


def _processor_share(program: Program, group: StatementGroup) -> float:
    """Return the CPU time of the group's threads as a share of the run. The rest of the time, the
    threads waited, for example for a processor of a busy machine. The result is 0 if the CPU time
    is less than MIN_CPU of the line's time.
    """
    threads = {one.thread for one in group.members}
    usage = [one for one in program.profile.thread_usage if one.thread in threads]
    computed_ns = sum(one.user_ns + one.system_ns for one in usage)
    if computed_ns < MIN_CPU * group.total_line_ns:
        return 0.0
    ids = {one.process_id for one in threads}
    walls_ns = sum(one.wall_ns for one in program.profile.processes if one.id in ids)
    return min(1.0, computed_ns / walls_ns) if walls_ns else 0.0
