"""`queryprof run`: run a command, and record it and its Python children."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import click

from queryprof.errors import QueryprofError
from queryprof.operations import NO_CALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.cli.recording import CommandRecordings
    from queryprof.report.export.functions import Statistics

MAX_WORKLOAD_BYTES = 256_000_000
"""Maximum size of each process's workload. Executions beyond this size are counted as missing."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(), help="Trace file.  [default: PROGRAM.qprof]")
@click.option("--no-report", is_flag=True, help="Write the trace, but print no report.")
@click.option(
    "--cprofile",
    "profiles_functions",
    is_flag=True,
    help="Also profile Python functions with cProfile (main thread only; adds overhead).",
)
@click.option(
    "--explain-locks",
    is_flag=True,
    help="Add a note to lock errors: which process and line hold the lock.",
)
@click.option(
    "--parameters",
    is_flag=True,
    help="Keep the SQL and parameters of the slowest executions. They may hold secrets.",
)
@click.option(
    "--record-workload",
    "records_workload",
    is_flag=True,
    help="Record every execution with its parameters, for `queryprof lab`.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    output: str | None,
    no_report: bool,
    profiles_functions: bool,
    parameters: bool,
    explain_locks: bool,
    records_workload: bool,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND, record its queries, and print a report.

    COMMAND is a script, -m MODULE, -c CODE, or any command that starts Python. The report goes to
    stderr. The program's output and exit status do not change.
    """
    from queryprof.cli.command import python_command, run_command
    from queryprof.cli.recording import CommandRecordings
    from queryprof.cli.signals import SignalForwarding
    from queryprof.core.settings import WORKLOAD_VARIABLE, read_settings

    read_settings()  # invalid settings are reported before the program runs
    arguments, name = python_command(command)
    with SignalForwarding() as signals:
        parts = CommandRecordings(output or f"{name}.qprof")
        functions = _recorded_statistics_path(parts) if profiles_functions else None
        environment = dict(parts.environment(parameters, (), explain_locks, bool(functions)))
        if records_workload:
            environment[WORKLOAD_VARIABLE] = _workload_prefix(parts)
        try:
            with parts.watching_processes(None if no_report else _import_report):
                status = run_command(arguments, environment, signals)
        except QueryprofError:
            parts.remove()
            raise
        made = _make_trace(parts, functions)
    if made:
        _report_results(parts, made, no_report)
    status.exit()


def write_trace_and_report(parts: CommandRecordings, no_report: bool) -> bool:
    """Make the trace of a recording, and print its report. Returns False if there is no trace,
    after printing the reason.
    """
    made = _make_trace(parts, None)
    if made:
        _report_results(parts, made, no_report)
    return bool(made)


class OtherResults(NamedTuple):
    """Results of a recording in addition to its trace.

    Attributes:
        has_functions: whether the user requested function times (--cprofile).
        functions: cProfile's statistics; None if they are missing.
    """

    has_functions: bool
    functions: Statistics | None


def _report_results(parts: CommandRecordings, made: OtherResults, no_report: bool) -> None:
    """Print the report, and write the other requested files. Never raises.

    An error here must not replace the program's exit status.
    """
    from queryprof.cli.output import allow_closed_output, print_message

    try:
        if not no_report:
            with allow_closed_output():
                _print_report(parts)
        if made.has_functions:
            with allow_closed_output():
                _write_statistics(made.functions, parts.output)
    except KeyboardInterrupt:
        print_message("interrupted")  # only the report is interrupted
    except Exception as error:
        print_message(str(error))
    finally:
        parts.remove()


def _make_trace(parts: CommandRecordings, functions: str | None) -> OtherResults | None:
    """Make the trace. If there is no trace, print the reason and return None."""
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress

    try:
        with progress("merging", parts.count) as step:
            merged = parts.merge(step)
        made = OtherResults(bool(functions), _read_and_remove(functions) if functions else None)
    except Exception as error:
        print_message(str(error))
        return None
    if parts.keeps_output or not merged:
        parts.remove()
    if not merged:
        print_message(
            "no Python process was recorded: none ran or called a database, the trace could not be"
            " written, Python ran without its site module (python -S), or the process was killed or"
            " called os._exit()"
        )
        return None
    return made


def _print_report(parts: CommandRecordings) -> None:
    """Print the report and the trace's path to stderr.

    Imports little if there is nothing to report.
    """
    from queryprof.report.inert import escape_control_characters
    from queryprof.trace.processes import is_worth_keeping

    if is_worth_keeping(parts.output):
        from queryprof.analysis.report import TOP_SHOWN, Report
        from queryprof.collect.reader import read_profile
        from queryprof.findings.lookup import findings_of
        from queryprof.report.terminal.report import print_report

        report = Report(read_profile(parts.output), top=TOP_SHOWN)
        print_report(report, file=sys.stderr, findings=findings_of(report))
    else:
        click.echo(NO_CALLS, err=True)
    if parts.keeps_output:
        click.echo(f"\ntrace: {escape_control_characters(os.path.relpath(parts.output))}", err=True)


def _write_statistics(statistics: Statistics | None, trace: str) -> None:
    """Write cProfile's statistics, with the statements of a trace, next to the trace."""
    from queryprof.collect.reader import read_profile
    from queryprof.output_file import write_output
    from queryprof.report.export.functions import MARK, add_statements_to_statistics
    from queryprof.report.inert import escape_control_characters

    if statistics is None:
        click.echo(
            "queryprof: no function times: the program was killed, called os._exit(), or is not a"
            " Python program",
            err=True,
        )
        return
    profile = read_profile(trace)
    path = statistics_path(trace)
    write_output(path, add_statements_to_statistics(statistics, profile), MARK)
    click.echo(f"functions: {escape_control_characters(os.path.relpath(path))}", err=True)
    if len({aggregate.thread for aggregate in profile.aggregates}) > 1:
        click.echo(
            "cProfile covers only the main thread; on Python 3.12 and newer, its figures may mix"
            " threads",
            err=True,
        )


def _read_and_remove(path: str) -> Statistics | None:
    from queryprof.report.export.functions import read_and_remove_statistics

    return read_and_remove_statistics(path)


def statistics_path(trace: str) -> str:
    """Return the path of cProfile's statistics next to a trace."""
    return f"{os.path.splitext(trace)[0]}.prof"


def _recorded_statistics_path(parts: CommandRecordings) -> str:
    """Return where the recorded process writes cProfile's statistics."""
    from queryprof.recorder.autoload import FUNCTIONS_FILE
    from queryprof.report.export.functions import MARK

    _require_trace(parts, "--cprofile")
    _refuse_other_file(parts, statistics_path(parts.output), MARK)
    return parts.path_beside(FUNCTIONS_FILE)


def _workload_prefix(parts: CommandRecordings) -> str:
    """Return where the processes write their workloads, and remove an earlier run's workloads."""
    from queryprof.replay.workload import remove_workloads, workload_prefix

    _require_trace(parts, "--record-workload")
    try:
        remove_workloads(parts.output)
    except QueryprofError:
        parts.remove()
        raise
    return f"{MAX_WORKLOAD_BYTES}:{workload_prefix(os.path.abspath(parts.output))}"


def _require_trace(parts: CommandRecordings, option: str) -> None:
    if not parts.keeps_output:
        parts.remove()
        raise click.UsageError(
            f"{option} needs a trace file: its own file is written next to the trace"
        )


def _refuse_other_file(parts: CommandRecordings, path: str, mark: bytes) -> None:
    """Raise QueryprofError, before the program runs, if the file at `path` is not queryprof's."""
    from queryprof.output_file import refuse_other_file

    try:
        refuse_other_file(path, mark)
    except QueryprofError:
        parts.remove()
        raise


def _import_report() -> None:
    """Import the report's modules while the program runs.

    Imports are half of the time that `run` adds to an empty script.
    """
