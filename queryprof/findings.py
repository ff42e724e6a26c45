"""The findings of a report, with what is looked up for them: the program's source, and the schemas of
its databases.
"""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.analysis.findings.find import find
from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.report import Report
from queryprof.trace.database_schema import read_schema, schemas_of
from queryprof.trace.sources import Sources


def findings_of(report: Report, databases: Iterable[str] = ()) -> tuple[Finding, ...]:
    """The findings, those that can win most first.

    Args:
        databases: files whose schemas are read; without any those of the trace, as far as they are
            there.

    Raises:
        TraceError: one of `databases` cannot be read.
    """
    schemas = {path: read_schema(path) for path in databases}
    return find(
        report,
        Sources(report.profile.sources).loop_at,
        schemas or schemas_of(plan.database for plan in report.profile.plans),
    )
