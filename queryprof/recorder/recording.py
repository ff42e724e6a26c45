"""The recording of a block of code, and its presentation.

Code for the presentation is imported only when it is used.
"""

from __future__ import annotations

import os

from queryprof.collect.output_path import (
    is_null_device,
    prepare_output_path,
    refuse_missing_directory,
)
from queryprof.core.absence import absence_reason, is_core_absent
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain, muted
from queryprof.core.settings import read_settings
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import SessionError, TraceError
from queryprof.hooks.notebook_cells import cell_texts
from queryprof.recorder.session import session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self, TextIO

    from queryprof.analysis.report import Report
    from queryprof.findings.finding import Finding
    from queryprof.model import Profile
    from queryprof.program.sources import Sources

ENDED_INSIDE = (
    "the recording was ended inside the block (queryprof.uninstall, or another block's end): calls"
    " before or after that are missing"
)
IN_THE_MIDST = (
    "the block began in a signal handler or a finalizer, while this thread was starting, reading or"
    " ending a recording"
)

COLUMNS, TOP_SHOWN = 78, 10
"""Columns of the text form, and number of statements that it shows."""


def profile_so_far() -> Profile:
    """Return what this process has recorded so far. The recording continues."""
    from queryprof.collect.keep import add_recorded_files
    from queryprof.collect.reader import profile_from_connection
    from queryprof.trace.store import TraceStore

    session.write_pending()
    store = TraceStore(":memory:")
    try:
        add_recorded_files(store, (), own=True, is_clean=None)
        return profile_from_connection(store.connection)
    finally:
        store.close()


class Recording:
    """A recording of one block of code, as `profile` returns it.

    Attributes:
        path: the trace file; None without one.
        compared: one line for each comparison with an earlier recording.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._started_session = False
        self._is_open = False  # whether the block is open
        self._is_recording = False  # may end before the block
        self._lost: SessionError | TraceError | None = None
        self._part_before = (0, 0, 0)  # the part that was current at the beginning
        self._refusal = ""  # why nothing is recorded
        # start and end of the block; calls before and after are not part of it
        self._since_unix_ns = self._until_unix_ns = 0
        self._recorded: object = None  # the process's recording that contains the block
        self._at_end: list[Callable[[], None]] = []
        self._profile: Profile | None = None
        self._report: Report | None = None
        self._findings: tuple[Finding, ...] | None = None
        self._cells: Mapping[str, tuple[str, str]] = {}
        self.compared: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        if self._is_recording or self._profile is not None:
            raise SessionError(
                "this recording has already been used; create a new one with queryprof.profile()"
            )
        self._refusal = IN_THE_MIDST if session.exclusive.is_mine else absence_reason()
        if self._refusal:
            is_core_absent()  # prints the reason once
            self._is_open = self._is_recording = True
            return self
        with session.exclusive, own_imports():
            settings = None if session.is_on else read_settings()
            if self.path is not None:
                refuse_missing_directory(self.path)
                self.path = None if is_null_device(self.path) else prepare_output_path(self.path)
            self._started_session = session.start(settings, owner=self)
            if not self._started_session and not session.end_part():
                session.release(self)
                raise SessionError(
                    "cannot start this recording: the earlier part of the process's recording"
                    " cannot be saved to a file"
                )
            self._recorded = session.parts.identity
            self._part_before = session.parts.begin_reading()
            self._is_open = self._is_recording = True
            self._since_unix_ns = unix_ns()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self.stop()
        for action in self._at_end:
            action()
        error = self._lost
        if error and exc_info[0] is None:
            raise error
        if error:
            lost = "trace of the recorded block" if self.has_ended else "recorded block"
            # the program's own exception takes precedence
            complain(f"the {lost} is lost: {error}")

    def at_end(self, action: Callable[[], None]) -> None:
        """Run an action when the `with` block ends, even if the recording was stopped before."""
        self._at_end.append(action)

    def stop(self) -> None:
        """Stop recording although the block continues.

        If data is lost, the end of the block raises the error.
        """
        if not self._is_recording:
            return
        self._until_unix_ns = max(unix_ns(), self._since_unix_ns + 1)
        self._is_recording = False
        if self._refusal:
            self._keep_empty_profile()
            return
        with session.exclusive:
            try:
                self._load()
            except (SessionError, TraceError) as error:
                self._lost = error
            finally:
                session.end_reading_parts(self._part_before)
                session.release(self)

    @property
    def has_ended(self) -> bool:
        """Whether the block has ended and can be shown."""
        return self._profile is not None

    def _load(self) -> None:
        is_whole = session.is_on and session.parts.identity == self._recorded
        own = self._started_session and session.is_on
        if own:
            session.write_pending()
        elif session.is_on and not session.end_part():
            raise SessionError("the recording cannot be loaded: no file can be made")
        with muted(), own_imports():
            parts = session.parts.paths_after(self._part_before)
            try:
                found = self._read(parts, own)
            except TraceError:
                self.path = None
                self._keep(self._read(parts, own), is_whole)
                raise
            self._keep(found, is_whole)

    def _keep_empty_profile(self) -> None:
        from queryprof.model import Profile

        self.path = None
        self._profile = Profile((), (), left_out=(f"nothing was recorded: {self._refusal}",))

    def _keep(self, found: Profile, is_whole: bool) -> None:
        """Keep the profile, and the text of the notebook cells that it contains."""
        from dataclasses import replace

        lost = () if is_whole else (ENDED_INSIDE,)
        self._profile = replace(found, left_out=(*found.left_out, *lost))
        texts = cell_texts()
        if texts:
            frames = {frame.file for one in found.aggregates for frame in one.path}
            frames |= {frame.file for one in found.stack_samples for frame in one.stack}
            self._cells = {name: text for name, text in texts.items() if name in frames}

    def _read(self, parts: list[str], own: bool) -> Profile:
        from queryprof.collect.keep import add_recorded_files, write_trace
        from queryprof.collect.reader import profile_from_connection, read_profile
        from queryprof.trace.store import TraceStore

        if self.path is not None:
            since_ns, until_ns = self._since_unix_ns, self._until_unix_ns
            self.path = write_trace(self.path, parts, own, since_ns, until_unix_ns=until_ns)
            return read_profile(self.path)
        store = TraceStore(":memory:")
        try:
            add_recorded_files(
                store, parts, own, block_unix_ns=(self._since_unix_ns, self._until_unix_ns)
            )
            return profile_from_connection(store.connection)
        finally:
            store.close()

    @property
    def profile(self) -> Profile:
        """The profile of the block. Raises SessionError before the block has ended."""
        if self._profile is None:
            raise SessionError("the recorded block has not ended yet")
        return self._profile

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, largest saving first.

        SQLite's planner checks the proposed indexes, in a separate process.

        Raises:
            SessionError: the block has not ended.
        """
        if self._findings is None:
            with own_imports(), muted():  # reads the schema of the program's databases
                from queryprof.findings.lookup import findings_of

                report = self._whole_report()
                self._findings = findings_of(report, sources=self._sources())
        return self._findings

    def report(self, file: TextIO | None = None, top: int = 10) -> None:
        """Print the ranked report to `file` (default: standard output)."""
        with own_imports():
            from queryprof.analysis.report import Report
            from queryprof.findings.lookup import findings_of
            from queryprof.report.terminal.report import print_report

            report = Report(self.profile, top=top)
            with muted():
                findings = findings_of(report, with_planner=False, sources=self._sources())
            print_report(report, file, findings=findings)

    def html(self, path: str | os.PathLike[str]) -> str:
        """Write the report as a single, self-contained HTML file, and return its path.

        Raises:
            QueryprofError: the file cannot be written, or is another kind of file.
            SessionError: the block has not ended.
        """
        with own_imports():
            from queryprof.output_file import write_output
            from queryprof.report.html.html_report import MARK, html_page
            from queryprof.report.html.page_data import page_data

            whole, target = self._whole_report(), os.path.abspath(path)
            data = page_data(whole, self.findings, self._sources().lines_around)
            page = html_page(data, f"queryprof: {os.path.basename(target)}")
            write_output(target, page.encode(), MARK.encode())
        return target

    def dataframe(self) -> Any:
        """Return the statements by call site as a pandas.DataFrame, most expensive first.

        Times are in ns, shares from 0 to 1. Unknown figures are missing values.

        Raises:
            ImportError: pandas is not installed.
            SessionError: the block has not ended.
        """
        from queryprof.report.dataframe import report_dataframe

        return report_dataframe(self._whole_report())

    def change_since(self, before: Recording) -> str:
        """Compare with an earlier recording, in one line.

        The line shows changes of the block's time, executions, rows, VM steps and database time.

        Raises:
            SessionError: one of the blocks has not ended.
        """
        with own_imports():
            from queryprof.report.text.cards import one_line_change

            return one_line_change(before._whole_report(), self._whole_report())

    def __repr__(self) -> str:
        if self._profile is None:
            return "<queryprof.Recording: not ended>"
        with own_imports():
            from queryprof.report.text.cards import one_line_summary

            return f"<queryprof.Recording: {one_line_summary(self._whole_report().overview)}>"

    def __str__(self) -> str:
        if self._profile is None:
            return repr(self)
        from io import StringIO

        with own_imports():
            from queryprof.analysis.report import Report
            from queryprof.report.terminal.report import print_block_report

            text = StringIO()
            report = Report(self.profile, top=TOP_SHOWN)
            print_block_report(report, text, COLUMNS, self.findings, self.compared)
        return text.getvalue()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # IPython's protocol
        printer.text(repr(self) if cycle else str(self))

    def _repr_html_(self) -> str:
        """Return the cards for a notebook: text, without scripts."""
        with own_imports():
            from queryprof.report.html.cards import summary_cards_html

            if self._profile is None:
                return summary_cards_html(None)
            lines = self._sources().lines_around
            return summary_cards_html(self._whole_report(), self.findings, lines, self.compared)

    def _whole_report(self) -> Report:
        """Return the report on the whole recording. Raises SessionError."""
        if self._report is None:
            with own_imports():
                from queryprof.analysis.report import Report

                self._report = Report(self.profile)
        return self._report

    def _sources(self) -> Sources:
        from queryprof.program.sources import Sources

        return Sources(self.profile.sources, self._cells)
