"""`queryprof ab`: run a command on two revisions alternately, and compare them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from queryprof.cli.compare import comparison_options, print_verdict
from queryprof.errors import QueryprofError

ENDING = (signal.SIGTERM, signal.SIGHUP)
END_TIMEOUT_S = 5.0
"""How long a command may take to end after SIGTERM, in seconds."""

RUN = (
    sys.executable,
    "-P",
    "-c",
    "from queryprof.cli.main import main; main()",
    "run",
    "--no-report",
)


def run_order(runs: int) -> list[int]:
    """Return the side (0 or 1) of each run: A B B A A B ...

    With this order, a machine that slows down or a cache that warms up affects both sides equally.
    """
    return [side for run in range(runs) for side in ((0, 1) if run % 2 == 0 else (1, 0))]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--base", required=True, metavar="REV", help="Revision before the change.")
@click.option("--head", metavar="REV", help="Revision after the change.  [default: HEAD]")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Runs of each revision; comparing times needs six or more.",
)
@click.option(
    "--setup",
    metavar="COMMAND",
    help="Shell command to run once in each revision, to install what it needs.",
)
@comparison_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def ab(
    base: str,
    head: str | None,
    runs: int,
    setup: str | None,
    command: tuple[str, ...],
    **judgement: Any,
) -> None:
    """Record COMMAND in two git revisions, and compare them.

    queryprof checks both revisions out into temporary directories; your work tree does not change.
    It runs COMMAND alternately in both. COMMAND starts in the directory that corresponds to the
    current one.
    """
    from queryprof.cli.progress import progress
    from queryprof.cli.revisions import find_revision, has_uncommitted_changes, temporary_checkouts

    for number in ENDING:
        signal.signal(number, _exit_on_signal)
    commits = [find_revision(base), find_revision(head or "HEAD")]
    if head is None and has_uncommitted_changes():
        raise QueryprofError(
            "ab: the work tree has uncommitted changes: commit them, or use --head HEAD"
            " to ignore them"
        )
    with tempfile.TemporaryDirectory(prefix="queryprof-ab-") as traces:
        sides: tuple[list[str], list[str]] = ([], [])
        with temporary_checkouts(commits) as places:
            if setup:
                for place, name in zip(places, ("base", "head"), strict=True):
                    _run_command(f"the setup of {name}", ["sh", "-c", setup], place)
            with progress("running", 2 * runs) as step:
                for side in run_order(runs):
                    name = ("base", "head")[side]
                    trace = os.path.join(traces, f"{name}{len(sides[side])}.qprof")
                    _run_command(
                        f"the command in {name}", [*RUN, "-o", trace, *command], places[side]
                    )
                    if not os.path.exists(trace):
                        raise QueryprofError(f"ab: the command in {name} started no Python")
                    sides[side].append(trace)
                    step()
        print_verdict(*sides, **judgement)


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    """End this command like an error, so that the checked-out revisions are removed."""
    raise SystemExit(128 + number)


def _run_command(what: str, arguments: list[str], directory: str) -> None:
    process = subprocess.Popen(
        arguments,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate()
    except BaseException:  # Ctrl-C, or a signal: end the command as well
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        lines = output.strip().splitlines() or ["it printed nothing"]
        raise QueryprofError(f"ab: {what} failed (exit status {process.returncode}): {lines[-1]}")
