"""`queryprof html`: write the report as a single self-contained HTML page."""

from __future__ import annotations

import os
from functools import partial

import click

from queryprof.cli.proving import BUDGET_S, PROVE, check_proving, prove_advice
from queryprof.cli.reading import trace_argument
from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queryprof.analysis.report import Report
    from queryprof.analysis.tree import Node
    from queryprof.findings.finding import Finding
    from queryprof.model.advice import Advice

    Prover = Callable[[Report, Sequence[Finding]], Advice]

PAGE = ".html"
"""File name extension of a page."""

MAX_BOTTLENECKS = 1000
"""Maximum number of bottlenecks on a page. The most expensive bottlenecks come first."""


@click.command()
@trace_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Page to write; - is standard output.  [default: FILE.html]",
)
@click.option("--against", type=click.Path(), help="Earlier trace to compare with.")
@click.option(
    "--cprofile",
    type=click.Path(),
    help="File of function times, from `run --cprofile` or cProfile.",
)
@click.option(
    "--db",
    "databases",
    type=click.Path(),
    multiple=True,
    help="Read the schema from this database (read-only); required with --prove.  [default: the"
    " trace's]",
)
@PROVE
@click.option("--no-source", is_flag=True, help="Leave out lines of source code.")
def html(
    file: str,
    output: str | None,
    against: str | None,
    cprofile: str | None,
    databases: tuple[str, ...],
    proves: bool,
    no_source: bool,
) -> None:
    """Write the report as an HTML page.

    FILE is a trace, a directory of traces, or a glob pattern.
    """
    from queryprof.output_file import beside, refuse_other_file, write_output
    from queryprof.report.html.html_report import MARK
    from queryprof.report.inert import escape_control_characters

    check_proving(proves, databases)
    path = output or beside(file, PAGE)
    if path != "-":
        refuse_other_file(path, MARK.encode())
    prove = partial(prove_advice, databases=databases, budget_s=BUDGET_S, interpreter=None)
    page = report_page(
        file,
        against,
        cprofile,
        with_source=not no_source,
        databases=databases,
        prove=prove if proves else None,
    )
    if path == "-":
        click.echo(page, nl=False)
        return
    write_output(path, page.encode(), MARK.encode())
    click.echo(escape_control_characters(f"page: {path}"), err=True)


def report_page(
    file: str,
    against: str | None,
    functions: str | None,
    *,
    with_source: bool,
    databases: Sequence[str] = (),
    prove: Prover | None = None,
) -> str:
    """Return the HTML page of a trace. `prove` measures the fixes of the findings.

    Raises:
        TraceError: the trace or one of the databases cannot be read.
        QueryprofError: the file with the functions' times cannot be read.
    """
    from queryprof.analysis.report import Report
    from queryprof.cli.reading import read_combined_profile
    from queryprof.findings.lookup import findings_of
    from queryprof.findings.proved import with_proofs
    from queryprof.program.sources import Sources
    from queryprof.report.html.html_report import html_page
    from queryprof.report.html.page_data import page_data

    report = Report(read_combined_profile(file), top=MAX_BOTTLENECKS)
    before = Report(read_combined_profile(against)) if against else None
    source = Sources(report.profile.sources).lines_around if with_source else None
    tree = _function_tree(functions) if functions else None
    findings = findings_of(report, databases)
    advice = prove(report, findings) if prove else None
    findings = with_proofs(findings, advice) if advice else findings
    data = page_data(report, findings, source, before, tree, advice)
    return html_page(data, f"queryprof: {os.path.basename(os.path.abspath(file))}")


def _function_tree(path: str) -> Node:
    from queryprof.report.export.function_tree import build_function_tree

    try:
        with open(path, "rb") as file:
            return build_function_tree(file.read())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"html: {path}: {reason}") from error
