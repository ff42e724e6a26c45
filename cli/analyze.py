"""`queryprof analyze`: explain why a program's database work is slow, and what to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from queryprof.cli.output import allow_closed_output
from queryprof.cli.proving import check_proving, prove_advice, proving_options
from queryprof.cli.reading import trace_argument
from queryprof.errors import QueryprofError
from queryprof.model.postgresql import NO_SERVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queryprof.analysis.report import Report
    from queryprof.findings.finding import Finding
    from queryprof.model.advice import Advice
    from queryprof.model.postgresql import ServerFacts

EXIT_FOUND = 1
SHOWN = 10
"""Maximum number of findings in a table. The other formats have all findings."""

FORMATS = ("table", "json", "brief", "markdown", "github", "sarif", "sql")
FAIL_ON = ("high", "medium", "any", "none")


@click.command()
@trace_argument
@click.option(
    "--db",
    "databases",
    type=click.Path(),
    multiple=True,
    help="Read the schema from this database (read-only); required with --prove.  [default: the"
    " trace's]",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="none",
    show_default=True,
    help="Exit with status 1 if there is a finding of this severity or higher.",
)
@click.option(
    "--dsn",
    help="PostgreSQL server to ask for plans (connection string or service=NAME).",
)
@proving_options
def analyze(
    file: str,
    databases: tuple[str, ...],
    form: str,
    fail_on: str,
    dsn: str | None,
    proves: bool,
    budget_s: float,
    interpreter: str | None,
) -> None:
    """Explain why queries are slow and how to fix them.

    FILE is a trace, a directory of traces, or a glob pattern.
    """
    from queryprof.analysis.report import Report
    from queryprof.cli.reading import read_combined_profile
    from queryprof.findings.accepted import read_accepted_findings
    from queryprof.findings.lookup import findings_of
    from queryprof.findings.proved import statements_with_plan_findings, with_proofs
    from queryprof.findings.unknown_causes import unknown_data_notes
    from queryprof.report.places import Places

    if form == "sql" and not proves:
        raise click.UsageError("--format sql needs --prove")
    check_proving(proves, databases)
    accepted = read_accepted_findings(Path.cwd())
    report = Report(read_combined_profile(file))
    if not report.overview.calls:
        raise QueryprofError(f"analyze: {file}: no database calls were recorded")
    server = _server_facts(report, file, dsn) if dsn is not None else NO_SERVER
    found = findings_of(report, databases, server=server)
    advice = prove_advice(report, found, databases, budget_s, interpreter) if proves else None
    found = with_proofs(found, advice) if advice else found
    shown = [finding for finding in found if finding.identity not in accepted]
    known = {finding.identity for finding in found}
    cautions = [
        *report.overview.cautions,
        *filter(None, [_caution_about_databases(report, databases)]),
        *(f"in `accepted`, but no longer found: {one}" for one in accepted if one not in known),
    ]
    stale = [(one, reason, one not in known) for one, reason in accepted.items()]
    unknown = tuple(
        unknown_data_notes(report, {*server.plans, *statements_with_plan_findings(found)})
    )
    text = _format_findings(form, shown, report, unknown, stale, advice, server)
    with allow_closed_output():
        if text is None:
            from queryprof.report.terminal.findings import print_findings
            from queryprof.report.terminal.locks import long_hold_sentence

            if not shown and (sentence := long_hold_sentence(report)):
                cautions.append(sentence)
            print_findings(shown, Places(report.profile), cautions, unknown, SHOWN)
            if dsn is not None:
                from queryprof.report.terminal.server import print_server

                print_server(report, server)
            if advice:
                from queryprof.report.terminal.advice import print_advice

                print_advice(advice)
        elif text:
            click.echo(text)
    severities = {"any": ("high", "medium", "low"), "medium": ("high", "medium"), "high": ("high",)}
    if any(finding.severity in severities.get(fail_on, ()) for finding in shown):
        sys.exit(EXIT_FOUND)


def _caution_about_databases(report: Report, databases: tuple[str, ...]) -> str:
    """Return a sentence if the given or recorded databases do not fit or are gone; else ""."""
    from queryprof.findings.lookup import database_mismatch, unreadable_database_caution

    if databases:
        return database_mismatch(report, databases)
    return unreadable_database_caution(report)


def _server_facts(report: Report, file: str, dsn: str) -> ServerFacts:
    from queryprof.findings.lookup import statements_sent_to
    from queryprof.servers.postgresql.server import server_facts

    statements = statements_sent_to(report, "postgresql")
    if not statements:
        raise QueryprofError(f"analyze: {file}: no statement went to PostgreSQL; remove --dsn")
    return server_facts(dsn, statements)


def _format_findings(
    form: str,
    shown: Sequence[Finding],
    report: Report,
    unknown: tuple[str, ...],
    accepted: list[tuple[str, str, bool]],
    advice: Advice | None,
    server: ServerFacts,
) -> str | None:
    """Return the findings as text in a format; None for format "table"."""
    from queryprof.report.places import Places

    places = Places(report.profile)
    if form == "json":
        from queryprof.report.json.findings import findings_json

        cautions = (*report.overview.cautions, *unknown)
        return findings_json(shown, cautions, accepted, advice, server)
    if form == "brief":
        from queryprof.report.findings.brief import brief_json

        return brief_json(shown, places, (*report.overview.cautions, *unknown))
    if form == "sql" and advice:
        from queryprof.report.findings.sql_script import sql_script

        return sql_script(advice)
    if form == "markdown":
        from queryprof.report.findings.markdown import findings_markdown

        return findings_markdown(shown, places, unknown)
    if form in ("github", "sarif"):
        from queryprof.report.findings.github import findings_github
        from queryprof.report.findings.sarif import findings_sarif

        return (findings_github if form == "github" else findings_sarif)(shown, places)
    return None
