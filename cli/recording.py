"""Make the processes of a command record themselves, and merge their recordings into a trace."""

from __future__ import annotations

import os
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from shutil import rmtree

import queryprof.startup
from queryprof.cli.output import print_message
from queryprof.cli.thread_times import WIDTH_NS, ThreadTimes
from queryprof.collect.collection import SUFFIX, CommandDirectory
from queryprof.collect.output_path import is_null_device, refuse_to_replace
from queryprof.core.settings import (
    EXPLAIN_LOCKS_VARIABLE,
    PARAMETERS_VARIABLE,
)
from queryprof.core.user_code import ROOTS_VARIABLE
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import QueryprofError, TraceError
from queryprof.recorder.autoload import RUNNER_VARIABLE, VARIABLE, RunnerFacts
from queryprof.region.region import RECORDS, opened_region
from queryprof.region.region_files import is_living, regions_of_trace, remove_files, temporary_stem
from queryprof.trace.store import TraceStore

GRACE_S = 2.0
"""How many seconds `wait` waits for processes that outlive the command, such as multiprocessing's
helpers.
"""

LOOK_INTERVAL_S = 1.0
FIRST_DELAY_S = 0.2

REGIONS_LEFT = 64
"""Maximum number of regions (shared memory files, one per process) that wait for the end of the
command. With more, the regions of ended processes are collected while the command runs.
"""


def environment_with_hook() -> dict[str, str]:
    """Return this process's environment with a PYTHONPATH that loads queryprof's sitecustomize. A
    Python in this environment records itself if QUERYPROF is set.
    """
    startup = next(iter(queryprof.startup.__path__))
    environment = dict(os.environ)
    python_path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([startup, *([python_path] if python_path else [])])
    return environment


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Block signals in threads that start inside the `with` block.

    A signal wakes the main thread only if no other thread receives it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class CommandRecordings:
    """A directory next to the output for the recordings of a command's processes.

    Attributes:
        output: the path of the trace after `merge`. If the requested output is the null device, the
            trace is in the directory and is removed with the directory.
        keeps_output: whether the trace is kept, because the output is not the null device.

    Raises:
        QueryprofError: the output is not a trace, or nothing can be written next to it.
    """

    def __init__(self, output: str) -> None:
        self.output = os.path.abspath(output)
        self.keeps_output = not is_null_device(self.output)
        if self.keeps_output:
            refuse_to_replace(self.output)
        try:
            self.directory = tempfile.mkdtemp(
                prefix=os.path.basename(temporary_stem(self.output)) + ".",
                suffix=SUFFIX,
                dir=os.path.dirname(self.output) if self.keeps_output else None,
            )
        except OSError as error:
            raise QueryprofError(f"{output}: cannot be written: {error.strerror}") from error
        try:
            self._collection = CommandDirectory(self.directory, self._add_process_facts)
            self._collection.sign_as_runner()
        except OSError as error:
            rmtree(self.directory, ignore_errors=True)  # nothing marks it as queryprof's yet
            raise QueryprofError(f"{output}: cannot be written: {error.strerror}") from error
        if not self.keeps_output:
            self.output = os.path.join(self.directory, "merged")
        self._times = ThreadTimes()
        self._seen_ns: dict[int, int] = {}  # by process id: when it was last seen running
        self._ended_ns = 0  # when the command ended

    def path_beside(self, name: str) -> str:
        """Return a path for a file that is removed with the recordings."""
        return os.path.join(self.directory, name)

    def environment(
        self,
        parameters: bool,
        roots: tuple[str, ...],
        explain_locks: bool = False,
        profiles_functions: bool = False,
    ) -> Mapping[str, str]:
        """Return this process's environment, with the variables that make a Python record
        itself.
        """
        environment = environment_with_hook()
        environment[VARIABLE] = "1"
        environment[RUNNER_VARIABLE] = self.runner(profiles_functions).variable
        if explain_locks:
            environment[EXPLAIN_LOCKS_VARIABLE] = "1"
        if parameters:
            environment[PARAMETERS_VARIABLE] = "1"
        if roots:
            environment[ROOTS_VARIABLE] = os.pathsep.join(os.path.abspath(root) for root in roots)
        return environment

    def runner(self, profiles_functions: bool = False) -> RunnerFacts:
        """Return the facts about this command that the recorded processes need."""
        directory = os.path.join(os.path.abspath(self.directory), "")
        return RunnerFacts(os.getpid(), directory, profiles_functions)

    @contextmanager
    def watching_processes(self, first: Callable[[], None] | None = None) -> Iterator[None]:
        """Check the processes once a second while the block runs.

        If there are more than REGIONS_LEFT regions, collect the regions of ended processes.

        Args:
            first: called once in the checking thread, if the block runs for FIRST_DELAY_S.
        """
        is_over = threading.Event()

        def look() -> None:
            if first and not is_over.wait(FIRST_DELAY_S):
                first()
            while not is_over.wait(LOOK_INTERVAL_S):
                self._check_processes()

        thread = threading.Thread(target=look, name="queryprof collects", daemon=True)
        with blocked_signals():
            thread.start()
        try:
            yield
        finally:
            self._ended_ns = unix_ns()
            is_over.set()
            thread.join()

    def _check_processes(self) -> None:
        paths = regions_of_trace(self.directory)
        for path in paths:
            try:
                with opened_region(path) as region:
                    lives = is_living(region)
                    if lives:
                        self._seen_ns[int(region["pid"])] = unix_ns()
                    if lives and len(paths) <= REGIONS_LEFT:
                        self._times.record_usage(region, unix_ns())
                if lives is False and len(paths) > REGIONS_LEFT:
                    self._collection.take(path)
            except (QueryprofError, OSError, sqlite3.Error):
                continue  # the next check tries again

    def _add_process_facts(self, store: TraceStore, process: int, pid: int) -> None:
        """Add facts about a recorded process that the process itself could not write.

        The facts are the usage of its threads, and the last time at which it was seen running.
        """
        seen_ns = self._seen_ns.pop(pid, 0)
        for end_ns, parent in ((seen_ns, "parent_pid"), (self._ended_ns, str(os.getpid()))):
            store.connection.execute(
                "UPDATE process SET end_unix_ns = max(end_unix_ns, ?)"
                f" WHERE id = ? AND NOT clean_end AND parent_pid = {parent}",
                (end_ns, process),
            )
        rows = [(store.id("thread", process, name), *rest) for name, *rest in self._times.rows(pid)]
        if rows:
            store.add_intervals("thread_timeline", WIDTH_NS, rows)

    def wait(self, timeout_s: float = GRACE_S) -> list[int]:
        """Wait briefly for processes that outlive the command. Returns the pids of processes that
        still run.

        The pids are from the processes' own namespaces.
        """
        deadline = time.monotonic() + timeout_s
        while (living := self._running_pids()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return living

    def _running_pids(self) -> list[int]:
        living = []
        for path in regions_of_trace(self.directory):
            try:
                with opened_region(path) as region:
                    if region.state == RECORDS and is_living(region):
                        living.append(int(region["pid"]))
            except TraceError:
                continue  # `merge` reports it
        return living

    @property
    def count(self) -> int:
        """The number of regions and traces that `merge` will take."""
        return len(self._collection.regions) + len(self._collection.traces())

    def merge(self, step: Callable[[], None]) -> bool:
        """Write the trace from the recordings. Returns False if nothing was recorded.

        If another process is writing the output file, the trace is written next to this file. Call
        `remove` afterwards.

        Raises:
            QueryprofError: the trace cannot be written. The recordings stay at the path in the
                message.
        """
        living = self.wait()
        try:
            for path in self._collection.regions:
                self._collection.take(path)
                step()
            output = self._collection.write(self.output, step, self.keeps_output)
        except (OSError, sqlite3.Error, QueryprofError) as error:
            reason = str(error)
            named = reason if self.output in reason else f"{self.output}: {reason}"
            later = (
                f"; `queryprof report {self.output}` writes it later" if self.keeps_output else ""
            )
            raise QueryprofError(
                f"cannot be written: {named} (the parts are in {self.directory}{later})"
            ) from error
        self.output = output or self.output
        for reason in self._collection.skipped.values():
            print_message(f"skipped: {reason}")
        if living:
            print_message(
                f"still running; their later calls are not recorded: process"
                f" {', '.join(map(str, living))}"
            )
        return output is not None

    def remove(self) -> None:
        """Remove the directory and its contents."""
        self._collection.remove()

    def discard(self) -> None:
        """Remove the recordings and the directory, without making a trace."""
        remove_files(self._collection.regions)
        self.remove()
