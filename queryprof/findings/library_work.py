"""A library's own work around a statement, if it is unusually long."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import duration
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program

USUAL_NS = {"sqlalchemy": 215_000}
"""The time of a library's line that reads an object by its key (docs/cost.md), by library."""

MIN_FACTOR = 10
"""Work that takes this many times the usual time is unusual, also on a slow or busy machine."""

ROW_NS = 13_000
"""The time to make an object of a row: 11 to 13 us for SQLAlchemy 2.1 and three columns, in queries
of 10 and 100 rows on a busy machine.
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
    own_ns = group.mean_line_ns - group.steady_ns / runs
    usual_ns += round(ROW_NS * (group.totals.rows_each or 0.0))
    if own_ns >= MIN_FACTOR * usual_ns:
        yield (
            f"SQLAlchemy's own work takes {duration(own_ns)} of it, and usually"
            f" {duration(usual_ns)}: {CHECKS[library]}"
        )
