"""`queryprof analyze`: says why a program's database work is slow, and what to change."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from queryprof.errors import QueryprofError

EXIT_FOUND = 1
FORMATS = ("table", "json", "markdown", "github", "sarif")
FAIL_ON = ("high", "medium", "any", "none")


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--db", "databases", type=click.Path(), multiple=True,
    help="A database whose schema is read (read-only); else those of the trace.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True
)  # fmt: skip
@click.option(
    "--fail-on", type=click.Choice(FAIL_ON), default="none", show_default=True,
    help="Exit with 1 for findings so severe.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True,
              help="How many findings at the most, in a table.")  # fmt: skip
def analyze(file: str, databases: tuple[str, ...], form: str, fail_on: str, top: int) -> None:
    """Names why FILE's statements are slow, and the fix."""
    from queryprof.analysis.report import Report
    from queryprof.cli.accepted import read_accepted
    from queryprof.cli.reading import read_whole
    from queryprof.findings import findings_of
    from queryprof.report.places import Places

    accepted = read_accepted(Path.cwd())
    report = Report(read_whole(file))
    if not report.overview.calls:
        raise QueryprofError(f"analyze: {file}: no database calls were recorded")
    found = findings_of(report, databases)
    shown = [finding for finding in found if finding.identity not in accepted]
    known = {finding.identity for finding in found}
    cautions = [
        *report.overview.cautions,
        *(f"accepted, but no finding any more: {one}" for one in accepted if one not in known),
    ]
    places = Places(report.profile)
    if form == "json":
        from queryprof.report.json.findings import findings_json

        entries = [(one, reason, one not in known) for one, reason in accepted.items()]
        click.echo(findings_json(shown, report.overview.cautions, entries))
    elif form == "markdown":
        from queryprof.report.findings.markdown import findings_markdown

        click.echo(findings_markdown(shown, places))
    elif form == "github":
        from queryprof.report.findings.github import findings_github

        click.echo(findings_github(shown, places), nl=bool(shown))
    elif form == "sarif":
        from queryprof.report.findings.sarif import findings_sarif

        click.echo(findings_sarif(shown, places))
    else:
        from queryprof.report.terminal.findings import print_findings

        print_findings(shown, places, cautions, top)
    severities = {"any": ("high", "medium", "low"), "medium": ("high", "medium"), "high": ("high",)}
    if any(finding.severity in severities.get(fail_on, ()) for finding in shown):
        sys.exit(EXIT_FOUND)
