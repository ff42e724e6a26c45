"""Where a recorded command's processes write their traces, and how these become one."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import queryprof.hooks.startup
from queryprof.core.settings import PARAMETERS_VARIABLE, ROOTS_VARIABLE, STALL_VARIABLE
from queryprof.errors import QueryprofError
from queryprof.hooks.autoload import RUNNER_VARIABLE, VARIABLE
from queryprof.trace.merge import merge_traces
from queryprof.trace.place import beside, is_null, is_written, refuse_to_replace
from queryprof.trace.region import RECORDS, opened_region
from queryprof.trace.regions import is_living, parts_of, regions_of, remove

GRACE_S = 2.0
"""How long processes that outlive the command (helpers of multiprocessing) are waited for."""


class Parts:
    """A directory beside the output, in which each process writes a trace of its own.

    Attributes:
        output: where the trace is, after `merge`; in the directory, and gone with it, when the null
            device was asked for.
        keeps_output: whether it is not.

    Raises:
        QueryprofError: the output is no trace, or nothing can be written beside it.
    """

    def __init__(self, output: str) -> None:
        self.output = os.path.abspath(output)
        self.keeps_output = not is_null(self.output)
        if self.keeps_output:
            refuse_to_replace(self.output)
        try:
            self.directory = tempfile.mkdtemp(
                prefix=os.path.basename(self.output) + ".", suffix=".parts",
                dir=os.path.dirname(self.output) if self.keeps_output else None,
            )  # fmt: skip
        except OSError as error:
            raise QueryprofError(f"{output}: cannot be written: {error.strerror}") from error
        if not self.keeps_output:
            self.output = os.path.join(self.directory, "merged")

    def environment(
        self, parameters: bool, roots: tuple[str, ...], stall_ms: float | None = None
    ) -> Mapping[str, str]:
        """This process's environment, with what makes a Python record itself."""
        startup = next(iter(queryprof.hooks.startup.__path__))
        environment = dict(os.environ)
        python_path = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(
            [startup, *([python_path] if python_path else [])]
        )
        environment[VARIABLE] = os.path.join(self.directory, "")
        environment[RUNNER_VARIABLE] = str(os.getpid())
        environment["QUERYPROF_PACKAGE"] = os.path.dirname(next(iter(queryprof.__path__)))
        if stall_ms is not None:
            environment[STALL_VARIABLE] = f"{stall_ms:g}"
        if parameters:
            environment[PARAMETERS_VARIABLE] = "1"
        if roots:
            environment[ROOTS_VARIABLE] = os.pathsep.join(os.path.abspath(root) for root in roots)
        return environment

    def regions(self) -> list[str]:
        """What the processes have recorded: the parts of each before its region."""
        return [*parts_of(os.path.join(self.directory, "part")), *regions_of(self.directory)]

    def traces(self) -> list[str]:
        """The traces of processes that had no shared memory, sorted by name."""
        names = [name for name in os.listdir(self.directory) if name.endswith(".qprof")]
        return sorted(os.path.join(self.directory, name) for name in names)

    def wait(self, timeout_s: float = GRACE_S) -> list[int]:
        """Gives processes that outlived the command a moment; the pids of those still there."""
        deadline = time.monotonic() + timeout_s
        while (living := self._living()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return living

    def _living(self) -> list[int]:
        living = []
        for path in regions_of(self.directory):
            with opened_region(path) as region:
                if region.state == RECORDS and is_living(region):
                    living.append(int(region["pid"]))
        return living

    def merge(self, step: Callable[[], None]) -> bool:
        """Makes the output of what was recorded; False when nothing was.

        Where another process writes to the output, it goes beside it. `remove` the rest then; the
        regions of processes that still run stay for them to write to.

        Raises:
            QueryprofError: it cannot be written; what was recorded stays where it is, and it says so.
        """
        living = self.wait()
        traces, paths = self.traces(), self.regions()
        if traces or paths:
            if is_written(self.output):
                self.output = beside(self.output)
            try:
                with ExitStack() as stack:
                    regions = [stack.enter_context(opened_region(path)) for path in paths]
                    merge_traces(self.output, traces, step, regions)
            except QueryprofError as error:
                raise QueryprofError(f"{error} (the parts are in {self.directory})") from error
            remove(paths)
        if living:
            raise QueryprofError(
                f"process {', '.join(map(str, living))} still runs; what it asks from here on is lost"
            )
        return bool(traces or paths)

    def remove(self) -> None:
        """Removes the directory with what is in it."""
        shutil.rmtree(self.directory, ignore_errors=True)
