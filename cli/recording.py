"""Where a recorded command's processes write their traces, and how these become one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import queryprof.hooks.startup
from queryprof.cli.thread_times import WIDTH_NS, ThreadTimes
from queryprof.core.settings import PARAMETERS_VARIABLE, ROOTS_VARIABLE, STALL_VARIABLE
from queryprof.errors import QueryprofError
from queryprof.hooks.autoload import RUNNER_VARIABLE, VARIABLE
from queryprof.trace.convert import Conversion
from queryprof.trace.place import beside, is_null, is_written, refuse_to_replace
from queryprof.trace.region import RECORDS, Region, opened_region
from queryprof.trace.regions import checkpoints_of, is_living, parts_of, regions_of, remove
from queryprof.trace.store import TraceStore

GRACE_S = 2.0
"""How long processes that outlive the command (helpers of multiprocessing) are waited for."""

LOOK_INTERVAL_S = 1.0

REGIONS_LEFT = 64
"""With more of them, those of ended processes are taken while the command runs."""

COLLECTED = "collected.qprof"


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
        self._conversion: Conversion | None = None
        self._times = ThreadTimes()

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

    @contextmanager
    def collecting(self, first: Callable[[], None] | None = None) -> Iterator[None]:
        """While the block runs, looks at the processes once a second, and takes the regions of those
        that have ended when there are many.

        Args:
            first: what is to be done meanwhile, too.
        """
        is_over = threading.Event()

        def look() -> None:
            if first:
                first()
            while not is_over.wait(LOOK_INTERVAL_S):
                self._look()

        thread = threading.Thread(target=look, name="queryprof collects", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _look(self) -> None:
        paths = regions_of(self.directory)
        for path in paths:
            try:
                with opened_region(path) as region:
                    if not is_living(region):
                        if len(paths) > REGIONS_LEFT:
                            self._collect(path, region)
                    elif len(paths) <= REGIONS_LEFT:
                        self._times.look(region, time.time_ns())
            except QueryprofError:
                continue  # another look will do

    def _collect(self, path: str, region: Region) -> None:
        """Adds a region, its parts before it, to what is collected, and removes it."""
        if self._conversion is None:
            self._conversion = Conversion(TraceStore(os.path.join(self.directory, COLLECTED)))
        pid = int(region["pid"])
        parts = parts_of(os.path.join(self.directory, "part"), pid)
        for part in parts:
            with opened_region(part) as opened:
                self._conversion.add(opened)
        process = self._conversion.add(region)
        store = self._conversion.store
        rows = [(store.thread(process, name), *rest) for name, *rest in self._times.rows(pid)]
        if rows:
            store.begin()
            store.work.add_intervals(WIDTH_NS, rows)  # type: ignore[arg-type]  # five columns
            store.commit()
        remove([*parts, path])

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

    @property
    def count(self) -> int:
        """Regions and traces that `merge` will take."""
        return len(regions_of(self.directory)) + len(self._traces())

    def _traces(self) -> list[str]:
        """What was collected, and the traces of processes that had no shared memory."""
        names = [name for name in os.listdir(self.directory) if name.endswith(".qprof")]
        return sorted(os.path.join(self.directory, name) for name in names)

    def merge(self, step: Callable[[], None]) -> bool:
        """Makes the output of what was recorded; False when nothing was.

        Where another process writes to the output, it goes beside it. `remove` the rest then.

        Raises:
            QueryprofError: it cannot be written; what was recorded stays where it is, and it says so.
        """
        living = self.wait()
        try:
            for path in regions_of(self.directory):
                with opened_region(path) as region:
                    self._collect(path, region)
                step()
            for path in checkpoints_of(os.path.join(self.directory, "part")):
                with opened_region(path) as region:
                    if not is_living(region):
                        self._collect(path, region)
            if self._conversion is not None:
                self._conversion.store.close()
            traces = self._traces()
            if traces:
                self._write(traces, step)
        except (OSError, sqlite3.Error) as error:
            raise QueryprofError(f"{self.output}: cannot be written: {error}") from error
        except QueryprofError as error:
            raise QueryprofError(f"{error} (the parts are in {self.directory})") from error
        if living:
            raise QueryprofError(
                f"process {', '.join(map(str, living))} still runs; what it asks from here on is lost"
            )
        return bool(traces)

    def _write(self, traces: list[str], step: Callable[[], None]) -> None:
        if is_written(self.output):
            self.output = beside(self.output)
        if len(traces) > 1:
            from queryprof.trace.merge import merge_traces

            merge_traces(self.output, traces, step)
            return
        if self.keeps_output:
            refuse_to_replace(self.output)
        os.replace(traces[0], self.output)

    def remove(self) -> None:
        """Removes the directory with what is in it."""
        shutil.rmtree(self.directory, ignore_errors=True)
