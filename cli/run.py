"""`queryprof run`: runs a command and records it and its Python children."""

from __future__ import annotations

import os
import sys

import click

from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.cli.recording import Parts
    from queryprof.report.export.functions import Statistics


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=click.Path(),
    help="The trace file.  [default: PROGRAM.qprof]",
)  # fmt: skip
@click.option("--no-report", is_flag=True, help="Only write the trace.")
@click.option("--html", "writes_page", is_flag=True, help="Write the report as a page, too.")
@click.option(
    "--cprofile", "profiles_functions", is_flag=True,
    help="Profile the functions of the main thread, too: small ones take twice as long.",
)  # fmt: skip
@click.option(
    "--parameters", is_flag=True,
    help="Keep SQL texts and bound parameters of the slowest executions: they may be secrets.",
)  # fmt: skip
@click.option(
    "--record-workload", "workload_mb", type=click.IntRange(min=1), metavar="MB",
    is_flag=False, flag_value=256,
    help="Keep all executions in order, with all values, for `replay`: at most so much for each"
    " process.  [256 if MB is left out]",
)  # fmt: skip
@click.option(
    "--stall", "stall_ms", type=click.FloatRange(min=1, max=3_600_000), metavar="MS",
    help="A step of an event loop that takes longer is a stall.  [default: 50]",
)  # fmt: skip
@click.option(
    "--root", "roots", multiple=True, type=click.Path(exists=True, file_okay=False),
    help="A further directory whose code is the program's own.",
)  # fmt: skip
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    output: str | None,
    no_report: bool,
    writes_page: bool,
    profiles_functions: bool,
    parameters: bool,
    workload_mb: int | None,
    stall_ms: float | None,
    roots: tuple[str, ...],
    command: tuple[str, ...],
) -> None:
    """Runs COMMAND and reports its database time.

    COMMAND is a script, -m MODULE, -c CODE or any command that starts Pythons.

    The report goes to stderr; the program's own output and exit status stay as they are.
    """
    from queryprof.cli.command import python_command, run_command, uninterrupted
    from queryprof.cli.progress import progress
    from queryprof.cli.recording import Parts
    from queryprof.core.settings import WORKLOAD_VARIABLE, read_settings
    from queryprof.hooks.autoload import FUNCTIONS_VARIABLE
    from queryprof.report.inert import visible

    read_settings()  # invalid settings are reported before the program runs
    arguments, name = python_command(command)
    parts = Parts(output or f"{name}.qprof")
    page = _page_beside(parts) if writes_page else None
    functions = _functions_beside(parts) if profiles_functions else None
    try:
        with uninterrupted(), parts.collecting(None if no_report else _import_report):
            environment = {**parts.environment(parameters, roots, stall_ms)}
            if functions:
                environment[FUNCTIONS_VARIABLE] = functions
            if workload_mb:
                environment[WORKLOAD_VARIABLE] = _workload_beside(parts, workload_mb)
            status = run_command(arguments, environment)
    except QueryprofError:
        parts.remove()
        raise
    try:
        with uninterrupted(), progress("merging", parts.count) as step:
            merged = parts.merge(step)
        statistics = _taken(functions) if functions else None
        if parts.keeps_output:
            parts.remove()
        if not merged:
            click.echo("queryprof: no Python process was recorded", err=True)
        else:
            if not no_report:
                _print_report(parts)
            if functions:
                functions = _write_functions(statistics, parts.output)
            if page:
                _write_page(page, parts.output, functions)
        parts.remove()
    except Exception as error:
        # The program's own exit status matters more than what became of its recording.
        click.echo(f"queryprof: {visible(str(error))}", err=True)
    status.exit()


def _print_report(parts: Parts) -> None:
    """Prints the report to stderr, and where the trace is."""
    from queryprof.analysis.report import TOP_SHOWN, Report
    from queryprof.findings import findings_of
    from queryprof.report.inert import visible
    from queryprof.report.terminal.report import print_report
    from queryprof.trace.reader import read_profile

    report = Report(read_profile(parts.output), top=TOP_SHOWN)
    print_report(report, file=sys.stderr, findings=findings_of(report))
    if parts.keeps_output:
        click.echo(f"\ntrace: {visible(os.path.relpath(parts.output))}", err=True)


def _write_page(path: str, trace: str, functions: str | None) -> None:
    """Writes the report as a page, with the functions' times of a file, and says where."""
    from queryprof.cli.html import page_of, write_page
    from queryprof.report.inert import visible

    write_page(path, page_of(trace, None, functions, None, with_source=True))
    click.echo(f"page: {visible(os.path.relpath(path))}", err=True)


def _write_functions(statistics: Statistics | None, trace: str) -> str | None:
    """Writes cProfile's statistics with the statements of a trace beside it, and returns where; None:
    there are none.
    """
    from queryprof.report.export.functions import with_statements
    from queryprof.report.inert import visible
    from queryprof.trace.reader import read_profile

    if statistics is None:
        click.echo("queryprof: no functions' times: the program was killed, left by os._exit, or"
                   " is no Python program", err=True)  # fmt: skip
        return None
    profile = read_profile(trace)
    path = f"{os.path.splitext(trace)[0]}.prof"
    with open(path, "wb") as written:
        written.write(with_statements(statistics, profile))
    click.echo(f"functions: {visible(os.path.relpath(path))}", err=True)
    if len({aggregate.thread for aggregate in profile.aggregates}) > 1:
        click.echo("functions of the main thread only; on Python 3.12 and newer cProfile mixes"
                   " threads up", err=True)  # fmt: skip
    return path


def _taken(path: str) -> Statistics | None:
    from queryprof.report.export.functions import taken_statistics

    return taken_statistics(path)


def _functions_beside(parts: Parts) -> str:
    """Where the recorded process writes cProfile's statistics."""
    _need_trace(parts, "--cprofile")
    return parts.beside("functions.prof")


def _workload_beside(parts: Parts, megabytes: int) -> str:
    """Where the processes write their workloads; those of an earlier run are removed."""
    from queryprof.trace.workload import prefix_of, remove_workloads

    _need_trace(parts, "--record-workload")
    remove_workloads(parts.output)
    return f"{megabytes}:{prefix_of(os.path.abspath(parts.output))}"


def _need_trace(parts: Parts, option: str) -> None:
    if not parts.keeps_output:
        parts.remove()
        raise click.UsageError(f"{option} needs a trace: it writes beside it")


def _page_beside(parts: Parts) -> str:
    """The path of the page; an error is said before the program runs."""
    from queryprof.cli.html import page_path, refuse_other_file

    _need_trace(parts, "--html")
    path = page_path(parts.output)
    try:
        refuse_other_file(path)
    except QueryprofError:
        parts.remove()
        raise
    return path


def _import_report() -> None:
    """Runs beside the program: half of the time that `run` adds to an empty script are imports."""
    import queryprof.report.terminal.report
    import queryprof.trace.reader  # noqa: F401
