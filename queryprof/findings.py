"""The findings of a report, with what is looked up for them: the program's source, the schemas of
its databases, and what SQLite's planner makes of its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from queryprof.analysis.findings.few_rows import RULES, TestProgram, n_plus_one
from queryprof.analysis.findings.find import find
from queryprof.analysis.findings.finding import Finding, Severity
from queryprof.analysis.findings.groups import groups_of
from queryprof.analysis.findings.planning import NO_PLANNER
from queryprof.analysis.findings.planning import Planner as ProgramsPlanner
from queryprof.analysis.findings.program import Program
from queryprof.analysis.report import Report
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.program.database_schema import read_schema, schemas_of
from queryprof.program.sources import Sources

MOST_LOOKED_AT = 20
"""Statements."""


def misfit(report: Report, databases: Iterable[str]) -> str:
    """The sentence where none of the statements that take most fits a database that was given; "":
    one does.

    Raises:
        TraceError: one of `databases` cannot be read.
    """
    given = {path: read_schema(path) for path in databases}
    groups = groups_of(report)[:MOST_LOOKED_AT] if given and can_confine() else ()
    statements = [group.statement for group in groups if group.reads or group.writes]
    if not statements:
        return ""
    from queryprof.proof.planner import Planner

    for path in given:
        with Planner(given, dict.fromkeys(statements, path), ()) as planner:
            if any(map(planner.knows, statements)):
                return ""
    names = ", ".join(given)
    return (
        f"{names}: it has not the tables of the recorded statements: is it the program's database?"
    )


def can_confine() -> bool:
    """Whether a process that executes SQL of strangers can be given limits here."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    return hasattr(resource, "setrlimit")


def findings_of(
    report: Report,
    databases: Iterable[str] = (),
    *,
    with_planner: bool = True,
    sources: Sources | None = None,
    may_read: Callable[[str], bool] = lambda _: True,
    server: ServerFacts = NO_SERVER,
) -> tuple[Finding, ...]:
    """The findings, those that can win most first.

    Args:
        databases: files whose schemas are read; without any those of the trace, as far as they are
            there.
        with_planner: SQL is shown that serves a statement; for that a process is started, where
            the system can bound one.
        sources: the program's; by default the files that the recording saw.
        may_read: whether a database that the trace names may be read.
        server: what a PostgreSQL server says of the statements.

    Raises:
        TraceError: one of `databases` cannot be read.
    """
    profile = report.profile
    given = {path: read_schema(path) for path in databases}
    schemas = given or schemas_of(sorted(filter(may_read, profile.databases)))
    sources = sources or Sources(profile.sources)
    if not with_planner or not can_confine():
        return find(
            report, sources.loop_at, schemas, makes_tasks=sources.makes_tasks, server=server
        )
    from queryprof.proof.planner import Planner  # its process has limits that not all systems have

    statements = dict.fromkeys(a.statement for a in profile.aggregates)
    files = {plan.statement: plan.database for plan in profile.plans}
    if len(given) == 1:  # the program's may have been elsewhere
        files = dict.fromkeys(statements, *given)
    elif len(schemas) == 1:  # a driver may show no plans, nor whose they are
        files = {**dict.fromkeys(statements, *schemas), **files}
    with Planner(schemas, files, statements, profile.sqlite_versions) as planner:
        return find(report, sources.loop_at, schemas, planner, sources.makes_tasks, server)


def findings_of_request(report: Report, sources: Sources) -> tuple[Finding, ...]:
    """The findings of one request, and its queries in loops that take no time on the few rows of
    a development database.
    """
    found = findings_of(report, sources=sources)
    known = {(one.statement, one.site) for one in found}
    program = Program(report, sources.loop_at, {}, makes_tasks=sources.makes_tasks)
    loops = n_plus_one(program, lambda _: False)
    fast = [one for one in loops if (one.statement, one.site) not in known]
    return (*found, *(replace(one, severity=Severity.LOW) for one in fast))


def findings_of_test(
    report: Report,
    statements: Iterable[str],
    categories: Iterable[str],
    is_test: Callable[[str], bool],
) -> list[Finding]:
    """The findings of a test, by counts and plans.

    Args:
        statements: all of the recording, some of which may have made the tables.
        categories: of OF_TESTS; is_test: whether a file is one of tests.
    """
    profile = report.profile
    sources, schemas = Sources(profile.sources), schemas_of(sorted(profile.databases))

    def found(planner: ProgramsPlanner) -> list[Finding]:
        program = TestProgram(report, sources.loop_at, schemas, planner, sources.makes_tasks)
        return [one for name in sorted(categories) for one in RULES[name](program, is_test)]

    if not can_confine():
        return found(NO_PLANNER)
    from queryprof.proof.planner import Planner

    files = {plan.statement: plan.database for plan in profile.plans}
    with Planner(schemas, files, statements, profile.sqlite_versions) as planner:
        return found(planner)


def sent_to(report: Report, system: str) -> list[str]:
    """The statements that were sent to a database system, those that take most time first."""
    systems = report.profile.systems
    groups = sorted(groups_of(report), key=lambda group: -group.self_ns)
    names = dict.fromkeys(group.statement for group in groups)
    return [one for one in names if systems.get(one) == system]
