"""The findings of a report, including facts from sources, schemas and SQLite's planner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from os.path import basename, isabs, isfile

from queryprof.analysis.report import Report
from queryprof.findings.few_rows import RULES, TestProgram, find_n_plus_one
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity, least_severe
from queryprof.findings.groups import statement_groups
from queryprof.findings.heavy import NAMED_SHARE
from queryprof.findings.program import Program
from queryprof.model import Profile
from queryprof.model.postgresql import NO_SERVER, ServerFacts
from queryprof.planner.facts import NO_PLANNER, Planner
from queryprof.program.database_schema import read_schema, read_schemas
from queryprof.program.sources import Sources

MAX_CHECKED = 20
"""The number of most expensive statements that database_mismatch() checks."""


def database_mismatch(report: Report, databases: Iterable[str]) -> str:
    """Return a sentence if none of the most expensive statements fits a database of `databases`;
    else "".

    Raises:
        TraceError: one of `databases` cannot be read.
    """
    given = {path: read_schema(path) for path in databases}
    groups = statement_groups(report)[:MAX_CHECKED] if given and can_confine() else ()
    statements = [group.statement for group in groups if group.reads or group.writes]
    if not statements:
        return ""
    from queryprof.planner.planner import SchemaPlanner

    for path in given:
        with SchemaPlanner(given, dict.fromkeys(statements, path), ()) as planner:
            if any(map(planner.knows_names, statements)):
                return ""
    names = ", ".join(given)
    return f"{names}: lacks the tables of the recorded statements; is it the program's database?"


def unreadable_database_caution(report: Report) -> str:
    """Return a caution if statements on missing database files take much of the time; else ""."""
    total_ns, by_path = 0, dict.fromkeys(report.profile.databases, 0)
    gone = _unreadable_databases(report.profile, [*filter(isfile, by_path)])
    for one in report.profile.aggregates:
        total_ns += one.self_ns
        if one.statement in gone:
            by_path[gone[one.statement]] += one.self_ns
    names = sorted(basename(path) for path, ns in by_path.items() if ns > NAMED_SHARE * total_ns)
    if not names:
        return ""
    return (
        f"{', '.join(names)} cannot be read here, so the indexes, triggers and statistics are"
        " unknown: give a copy with --db"
    )


def can_confine() -> bool:
    """Return whether this system can limit the resources of a process that runs untrusted SQL."""
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
    """Return the findings, largest saving first.

    Args:
        databases: files whose schemas are read. The default is the trace's databases, if they
            exist.
        with_planner: propose SQL that SQLite's planner would use. This starts a process, and is
            skipped on systems that cannot limit a process.
        sources: the program's sources; by default the files of the recording.
        may_read: returns whether a database named in the trace may be read.
        server: facts from a PostgreSQL server.

    Raises:
        TraceError: one of `databases` cannot be read.
    """
    profile = report.profile
    given = {path: read_schema(path) for path in databases}
    schemas = given or read_schemas(sorted(filter(may_read, profile.databases)))
    sources = sources or Sources(profile.sources)
    if not with_planner or not can_confine():
        return _with_unreadable_database_doubt(
            find_all(
                report,
                sources.loop_at,
                schemas,
                makes_tasks=sources.makes_tasks,
                server=server,
                lines=sources,
            ),
            {} if given else _unreadable_databases(profile, schemas),
        )
    # imported late: not all systems can limit the planner's process
    from queryprof.planner.planner import SchemaPlanner

    statements = dict.fromkeys(a.statement for a in profile.aggregates)
    files = _database_by_statement(profile, statements, given, schemas)
    with SchemaPlanner(schemas, files, statements, profile.sqlite_versions) as planner:
        found = find_all(
            report,
            sources.loop_at,
            schemas,
            planner,
            sources.makes_tasks,
            server,
            sources,
        )
    return _with_unreadable_database_doubt(
        found, {} if given else _unreadable_databases(profile, schemas)
    )


def _database_by_statement(
    profile: Profile,
    statements: Mapping[str, None],
    given: Collection[str],
    schemas: Collection[str],
) -> Mapping[str, str]:
    """Return the database file of each statement, as far as it is known."""
    files = {plan.statement: plan.database for plan in profile.plans}
    if len(given) == 1:  # the recorded path may be different
        return dict.fromkeys(statements, *given)
    if len(schemas) == 1:  # a driver may show neither plans nor their databases
        return {**dict.fromkeys(statements, *schemas), **files}
    return files


def _unreadable_databases(profile: Profile, schemas: Collection[str]) -> dict[str, str]:
    """Return the database of each statement whose database files cannot be read now."""
    files: dict[str, set[str]] = {}
    for plan in profile.plans:
        files.setdefault(plan.statement, set()).add(plan.database)
    return {
        statement: min(paths)
        for statement, paths in files.items()
        if all(isabs(path) for path in paths) and not paths & set(schemas)
    }


def _with_unreadable_database_doubt(
    found: tuple[Finding, ...], gone: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Return the findings. An index for a database that cannot be read gets a doubt, and a severity
    of at most MEDIUM.
    """
    return tuple(
        (
            replace(
                one,
                severity=least_severe(one.severity, Severity.MEDIUM),
                doubt=one.doubt
                or f"{basename(gone[one.statement])} cannot be read here, so SQLite's planner did"
                " not check the index: give the database with --db.",
            )
            if one.statement in gone and _proposes_index(one)
            else one
        )
        for one in found
    )


def _proposes_index(finding: Finding) -> bool:
    return finding.code.startswith("CREATE INDEX") or finding.fix.startswith("Create an index")


def findings_of_request(report: Report, sources: Sources) -> tuple[Finding, ...]:
    """Return the findings of a request, and its queries in loops.

    Queries in loops are included even if they take no time on the few rows of a development
    database.
    """
    found = findings_of(report, sources=sources)
    known = {(one.statement, one.site) for one in found}
    program = Program(
        report,
        sources.loop_at,
        {},
        makes_tasks=sources.makes_tasks,
        lines=sources,
    )
    loops = find_n_plus_one(program, lambda _: False)
    fast = [one for one in loops if (one.statement, one.site) not in known]
    return (*found, *(replace(one, severity=Severity.LOW) for one in fast))


def findings_of_test(
    report: Report,
    statements: Iterable[str],
    categories: Iterable[str],
    is_test: Callable[[str], bool],
) -> list[Finding]:
    """Return the findings of a test, based on counts and plans.

    Args:
        statements: all statements of the recording. Some may have created the tables.
        categories: a subset of TEST_CATEGORIES.
        is_test: returns whether a file contains tests.
    """
    profile = report.profile
    sources, schemas = Sources(profile.sources), read_schemas(sorted(profile.databases))

    def found(planner: Planner) -> list[Finding]:
        program = TestProgram(
            report,
            sources.loop_at,
            schemas,
            planner,
            sources.makes_tasks,
            lines=sources,
        )
        return [one for name in sorted(categories) for one in RULES[name](program, is_test)]

    if not can_confine():
        return found(NO_PLANNER)
    from queryprof.planner.planner import SchemaPlanner

    files = {plan.statement: plan.database for plan in profile.plans}
    with SchemaPlanner(schemas, files, statements, profile.sqlite_versions) as planner:
        return found(planner)


def statements_sent_to(report: Report, system: str) -> list[str]:
    """Return the statements sent to a database system, most time first."""
    systems = report.profile.systems
    groups = sorted(statement_groups(report), key=lambda group: -group.self_ns)
    names = dict.fromkeys(group.statement for group in groups)
    return [one for one in names if systems.get(one) == system]
