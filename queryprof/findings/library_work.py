"""A library's own work around a statement, if it is unusually long."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import duration
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.sql.tokens import tokens_of

USUAL_NS = {"sqlalchemy": 215_000}
"""The usual time of a line that reads an object by its key, by library (docs/cost.md)."""

MIN_FACTOR = 10
"""Work that takes this many times the usual time is unusual even on a slow or busy machine."""

MIN_CPU = 0.8
"""If the threads computed for a smaller share of the line's time, they waited for a processor."""

ROW_NS = 13_000
"""The time to create an object from a row: 11 to 13 us with SQLAlchemy 2.1 and three columns, in
queries of 10 and 100 rows on a busy machine.
"""

CHECKS = {
    "sqlalchemy": (
        "check that the engine has no echo=True, that no listener or logger works for each"
        " statement, and that types of your own set cache_ok = True"
    ),
}
"""What to check, by library (https://docs.sqlalchemy.org/en/20/faq/performance.html)."""


def unusual_library_work(program: Program, group: StatementGroup) -> Iterator[str]:
    """Yield a sentence if a library works much longer than usual for each execution."""
    library = program.library(group.statement)
    usual_ns = USUAL_NS.get(library)
    if usual_ns is None or group.line_ns is None or program.other_reads_of_line(group):
        return
    runs = max(1, group.totals.statement_executions)
    if not _is_simple(group.statement) or not _had_processor(program, group):
        return
    own_ns = group.mean_line_ns - group.steady_ns / runs
    usual_ns += round(ROW_NS * (group.totals.rows_each or 0.0))
    if own_ns >= MIN_FACTOR * usual_ns:
        yield (
            f"SQLAlchemy, with the code that it calls, takes {duration(own_ns)} of it, and usually"
            f" {duration(usual_ns)}: {CHECKS[library]}"
        )


def _is_simple(statement: str) -> bool:
    """Return whether a statement reads one table with few conditions."""
    words = [token.keyword for token in tokens_of(statement)]
    return words.count("SELECT") == 1 and not {"JOIN", "OR", "IN"} & {*words}


def _had_processor(program: Program, group: StatementGroup) -> bool:
    """Return whether the group's threads computed for most of the time that the line took."""
    threads = {one.thread for one in group.members}
    usage = [one for one in program.profile.thread_usage if one.thread in threads]
    return sum(one.user_ns + one.system_ns for one in usage) >= MIN_CPU * group.total_line_ns
