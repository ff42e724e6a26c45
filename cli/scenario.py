"""`queryprof lab scenario`: a repeatable experiment with several processes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import click

from queryprof.cli.scenario_file import Scenario, read_scenario
from queryprof.errors import QueryprofError

MARK = ".queryprof-scenario"
"""Name of a file in every output directory. Only directories with this file may be emptied."""

TRACE = "scenario.qprof"
LEAD_S = 0.2
"""Seconds between the moment when all processes are ready and the start of the scenario."""

POLL_S = 0.05

Processes = Sequence[tuple[str, subprocess.Popen[str]]]
"""Each process with its name."""

WORKER = (sys.executable, "-P", "-m", "queryprof.cli.scenario_worker")


@click.command()
@click.argument("file", type=click.Path())
def scenario(file: str) -> None:
    """Run and record the processes that FILE describes.

    Then queryprof prints a report. The output directory is emptied first; scenario.qprof in it is
    the trace of all processes.
    """
    described = read_scenario(file)
    _prepare_output(described.output)
    trace = _record_scenario(described)
    from queryprof.analysis.report import TOP_SHOWN, Report
    from queryprof.collect.reader import read_profile
    from queryprof.findings.lookup import findings_of
    from queryprof.report.inert import escape_control_characters
    from queryprof.report.terminal.report import print_report

    report = Report(read_profile(trace), top=TOP_SHOWN)
    print_report(report, findings=findings_of(report))
    click.echo(f"\ntrace: {escape_control_characters(os.path.relpath(trace))}", err=True)


def _prepare_output(output: str) -> None:
    """Create the output directory. If an earlier scenario wrote it (it contains the file MARK),
    delete its content. Raises QueryprofError if it contains other files.
    """
    mark = os.path.join(output, MARK)
    try:
        if os.path.isdir(output) and os.listdir(output):
            if not os.path.exists(mark):
                raise QueryprofError(
                    f"{output}: has files that no scenario wrote; name another output directory"
                )
            shutil.rmtree(output)
        os.makedirs(output, exist_ok=True)
        with open(mark, "w"):
            pass
    except OSError as error:
        raise QueryprofError(f"{output}: cannot be cleaned: {error.strerror}") from error


def _record_scenario(described: Scenario) -> str:
    """Run all processes to their end. Returns the path of their merged trace."""
    from queryprof.cli.progress import progress
    from queryprof.cli.recording import CommandRecordings

    parts = CommandRecordings(os.path.join(described.output, TRACE))
    try:
        with parts.watching_processes():
            _run_processes(
                described, parts.environment(parameters=False, roots=(described.directory,))
            )
    except BaseException:
        parts.remove()
        raise
    with progress("merging", parts.count) as step:
        parts.merge(step)
    parts.remove()
    return parts.output


def _run_processes(described: Scenario, environment: Mapping[str, str]) -> None:
    ready, ready_end = os.pipe()
    go_end, go = os.pipe()
    processes: list[tuple[str, subprocess.Popen[str]]] = []
    try:
        for group, count in described.groups:
            lines = [
                (line.at_s, line.call, line.arguments)
                for line in described.lines
                if line.group == group
            ]
            for number in range(1, count + 1):
                name = f"{group} {number}" if count > 1 else group
                errors = open(os.path.join(described.output, f"{name}.err"), "w+")  # noqa: SIM115
                with errors:
                    process = subprocess.Popen(
                        [*WORKER, group, str(ready_end), str(go_end), json.dumps(lines)],
                        cwd=described.directory,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stderr=errors,
                        pass_fds=(ready_end, go_end),
                        text=True,
                    )
                processes.append((name, process))
        os.close(ready_end)
        ready_end = -1
        if not _all_ready(ready, processes):
            _stop_processes(processes)  # a process has already ended; the error is raised below
        start = f"{time.monotonic() + LEAD_S:.6f}".ljust(100).encode()
        for _ in processes:
            os.write(go, start)
        _wait_for_processes(described, processes)
    finally:
        _stop_processes(processes)
        for end in (ready, ready_end, go, go_end):
            if end >= 0:
                os.close(end)


def _all_ready(ready: int, processes: Processes) -> bool:
    """Wait for a byte from each process. Returns False if a process has ended instead."""
    missing = len(processes)
    while missing:
        if select.select([ready], [], [], POLL_S)[0]:
            received = os.read(ready, missing)
            if not received:  # the last process has closed its end
                return False
            missing -= len(received)
        elif any(process.poll() is not None for _, process in processes):
            return False
    return True


def _stop_processes(processes: Processes) -> None:
    for _, process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _wait_for_processes(described: Scenario, processes: Processes) -> None:
    """Wait for all processes. Raises QueryprofError for the first failed process."""
    failed = [(name, process.wait()) for name, process in processes]
    # Processes that this command stopped (negative status) are not the cause, so they come last.
    for name, status in sorted(failed, key=lambda end: end[1] < 0):
        if status:
            with open(os.path.join(described.output, f"{name}.err")) as file:
                lines = file.read().strip().splitlines() or ["unknown reason"]
            raise QueryprofError(
                f"{described.path}: {name} failed (exit status {status}): {lines[-1]}"
            )
