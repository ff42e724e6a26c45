"""`queryprof attach`: record running processes for a while."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from queryprof.cli.amounts import duration
from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.cli.recording import CommandRecordings
    from queryprof.recorder.attaching import AttachedProcess

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _ProcessId(click.IntRange):
    name = "process ID"  # for messages


@click.command()
@click.argument("pids", nargs=-1, required=True, type=_ProcessId(min=1), metavar="PID...")
@click.option(
    "--for", "for_s", type=duration(0.05, 86_400), help="Stop after this time.  [default: Ctrl-C]"
)
@click.option(
    "-o", "--output", type=click.Path(), help="Write the trace to this file.  [default: PID.qprof]"
)
@click.option("--no-report", is_flag=True, help="Write the trace, but print no report.")
def attach(pids: tuple[int, ...], for_s: float | None, output: str | None, no_report: bool) -> None:
    """Record running processes until Ctrl-C, and print a report.

    The processes must have been started with QUERYPROF=standby, unless they and this command run
    Python 3.14 or newer. Detaching restores them.
    """
    from queryprof.cli.recording import CommandRecordings
    from queryprof.cli.run import write_trace_and_report

    with ending_signals() as ended:
        parts = CommandRecordings(output or f"{pids[0]}.qprof")
        try:
            with attached_processes(pids, parts, ended) as attachments, parts.watching_processes():
                named = ", ".join(map(str, pids))
                until = "until Ctrl-C" if for_s is None else f"for {for_s:g} s, or until Ctrl-C"
                who = f"process {named} is" if len(pids) == 1 else f"processes {named} are"
                click.echo(f"queryprof: {who} recorded {until}", err=True)
                if others := sorted(set().union(*map(worker_pids, pids)) - set(pids)):
                    those = "1 worker process" if len(others) == 1 else f"{len(others)} workers"
                    all_pids = " ".join(map(str, (*pids, *others)))
                    click.echo(
                        f"queryprof: not recorded: {those}; to add: queryprof attach {all_pids}",
                        err=True,
                    )
                wait(attachments, ended, for_s)
        except QueryprofError:
            parts.discard()
            raise
    if not write_trace_and_report(parts, no_report):
        raise SystemExit(2)


def worker_pids(pid: int) -> set[int]:
    """Return the child processes that run the same executable, as a server's workers do."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text().split()):
                with suppress(OSError):
                    if os.path.samefile(f"/proc/{pid}/exe", f"/proc/{child}/exe"):
                        found.add(child)
    return found


@contextmanager
def attached_processes(
    pids: Sequence[int], parts: CommandRecordings, stop: int | None = None
) -> Iterator[list[AttachedProcess]]:
    """Attach to all of the processes, or to none, while the block runs.

    Args:
        stop: a descriptor that becomes readable when the user wants to stop waiting.

    Raises:
        AttachError: queryprof cannot attach to one of the processes.
    """
    from queryprof.cli.output import print_message
    from queryprof.recorder.attaching import attach
    from queryprof.recorder.guardian import Guardian

    runner = parts.runner().variable
    each = list(dict.fromkeys(pids))
    guardian = Guardian(each, runner)
    attachments: list[AttachedProcess] = []
    left: list[str] = []
    try:
        attachments.extend(attach(pid, runner, stop) for pid in each)
        yield attachments
    finally:
        discard_signals(stop)
        # Detach in parallel: a process that does not respond must not prolong the recordings of
        # the others.
        with ThreadPoolExecutor(max(1, len(attachments))) as pool:
            left = list(filter(None, pool.map(lambda one: one.end(stop=stop), attachments)))
        for reason in left:
            print_message(reason)
        guardian.end(is_all_ended=not left)


@contextmanager
def ending_signals() -> Iterator[int]:
    """Yield a descriptor that becomes readable when a signal should end this command."""
    reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def note(_number: int, _frame: object) -> None:
        """Do nothing: the interpreter has already written to the descriptor."""

    before = {number: signal.getsignal(number) for number in ENDING}
    # A handler in Python would run too late for a signal that comes just before poll() begins.
    wakes = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield reads
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakes)
        os.close(reads)
        os.close(writes)


def discard_signals(stop: int | None) -> None:
    """Discard the signals received so far, by reading them from the descriptor `stop`."""
    with suppress(BlockingIOError):
        while stop is not None and os.read(stop, 64):
            pass


def wait(attachments: Sequence[AttachedProcess], ended: int, for_s: float | None) -> None:
    """Wait until a signal arrives, the time is over, or all processes have ended."""
    deadline_s = None if for_s is None else time.monotonic() + for_s
    left = {one.fileno() for one in attachments}
    while left:
        timeout_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        ready, _, _ = select.select([ended, *left], [], [], timeout_s)
        if not ready or ended in ready:
            return
        left -= set(ready)
