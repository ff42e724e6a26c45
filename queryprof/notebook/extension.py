"""The IPython extension: `%load_ext queryprof` provides %%queryprof and %queryprof.

A cell with %%queryprof runs like any other cell (await, its lines, its last value). Its first line
becomes the call that begins the recording, and the event after the cell ends the recording. Cells
may run inside a cell (%%capture, %run): each event identifies its cell.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import OrderedDict
from dataclasses import dataclass
from inspect import currentframe
from typing import TYPE_CHECKING, Any

from queryprof.core.recorder import complain
from queryprof.errors import QueryprofError
from queryprof.notebook.options import USAGE, Options, read_options
from queryprof.recorder.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

NAME = "queryprof"
FIRST_LINE = re.compile(r"%%queryprof(?:\s+(.*))?$")
COMMENT = re.compile(r"#.*")

EMPTY_BODY = "\n"
"""The body that call_cell_magic() passes to record the running cell. IPython requires a body."""

RUNS_COMPARED = 20
"""Number of cells and lines whose recordings are kept, for comparison with their next run."""


@dataclass(slots=True)
class _RunningRecording:
    """A running recording.

    Attributes:
        cell: the event's description of its cell.
        key: identifies the cell, or a line in the cell, so that the next run finds it.
        earlier: the recording to compare with; None without one.
    """

    recording: Recording
    cell: object
    key: tuple[str, str]
    options: Options
    earlier: Recording | None
    words: str


class Extension:
    """The magics of one shell.

    Attributes:
        last: the recording that was shown last; None before the first one.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.last: Recording | None = None
        self._cells: list[Any] = []  # running cells, outermost first
        self._running: list[_RunningRecording] = []
        self._earlier: OrderedDict[tuple[str, str], tuple[object, Recording]] = OrderedDict()

    # -- its life ----------------------------------------------------------------------------

    def load(self) -> None:
        """Add the magics to the shell."""
        self.shell.register_magic_function(self._magic(), "line_cell", NAME)
        self.shell.input_transformers_cleanup.append(call_cell_magic)
        self.shell.events.register("pre_run_cell", self.begin_cell)
        self.shell.events.register("post_run_cell", self.end_cell)

    def unload(self) -> None:
        """Remove the magics. Running recordings end and are shown."""
        while self._running:
            self._end(self._running[-1])
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)
        self.shell.input_transformers_cleanup.remove(call_cell_magic)
        self.shell.events.unregister("pre_run_cell", self.begin_cell)
        self.shell.events.unregister("post_run_cell", self.end_cell)

    def _magic(self) -> Any:
        from IPython.core.magic import no_var_expand, output_can_be_silenced

        def queryprof(line: str, cell: str | None = None, local_ns: Any = None) -> object:
            if cell is None:
                return self.line(line, local_ns)
            self.cell(line, cell)
            return None

        queryprof.__doc__ = USAGE
        queryprof.needs_local_scope = True  # type: ignore[attr-defined]
        return no_var_expand(output_can_be_silenced(queryprof))

    # -- a cell ------------------------------------------------------------------------------

    def begin_cell(self, info: Any) -> None:
        """Handle the start of a cell."""
        self._cells.append(info)

    def cell(self, line: str, cell: str) -> None:
        """Begin the recording of the running cell, or record a given cell."""
        options, rest = self._options(line)
        rest = COMMENT.sub("", rest).strip()
        if rest:
            raise self._usage_error(
                f"{rest!r}: the statements are on the lines below %%queryprof; -o NAME keeps the"
                " recording in a variable"
            )
        running = self._begin(options, "")
        if cell == EMPTY_BODY:
            self._end_at_errors(running)
            return
        try:
            self.shell.run_cell(cell)
        finally:
            self._end(running)

    def end_cell(self, result: Any) -> None:
        """Handle the end of a cell: end its recording and show it."""
        info = getattr(result, "info", None)
        if not any(one is info for one in self._cells):
            return  # an empty cell, whose start was not reported
        while self._cells.pop() is not info:
            pass
        for running in reversed(self._running.copy()):
            if not any(running.cell is one for one in self._cells):
                try:
                    self._end(running)
                except Exception as error:
                    complain(f"the recording of this cell failed: {type(error).__name__}: {error}")

    def _end_at_errors(self, running: _RunningRecording) -> None:
        """End a recording when the cell raises, because showing a traceback takes long."""
        shell, show = self.shell, self.shell.showtraceback
        before = shell.__dict__.get("showtraceback")  # may belong to another extension

        def showtraceback(*args: Any, **kwargs: Any) -> Any:
            if self._cells and self._cells[-1] is running.cell:
                running.recording.stop()
            return show(*args, **kwargs)

        def undo() -> None:
            if shell.__dict__.get("showtraceback") is not showtraceback:
                return
            if before is None:
                del shell.showtraceback
            else:
                shell.showtraceback = before

        shell.showtraceback = showtraceback
        running.recording.at_end(undo)

    # -- a line ------------------------------------------------------------------------------

    def line(self, line: str, local_ns: Mapping[str, object] | None) -> object:
        """Record a line of Python code and return its value. Without code, return the last
        recording.
        """
        options, statement = self._options(line)
        if not statement:
            if self.last is None:
                raise self._usage_error("nothing was recorded yet; %queryprof? shows how")
            return self.last
        body, value = self._compile(statement)
        names = self.shell.user_ns
        running = self._begin(options, statement)
        try:
            if body:
                exec(body, names, local_ns)
            return eval(value, names, local_ns) if value else None
        finally:
            self._end(running)

    def _compile(self, statement: str) -> tuple[CodeType | None, CodeType | None]:
        """Compile a line of Python code into its body and its last expression, with the real line
        numbers.
        """
        file, line = "<queryprof>", 1
        frame = currentframe()
        while frame and frame.f_globals is not self.shell.user_ns:
            frame = frame.f_back
        if frame:
            file, line = frame.f_code.co_filename, frame.f_lineno
        source = self.shell.transform_cell(statement)
        tree = self.shell.transform_ast(ast.parse(source, file))
        ast.increment_lineno(tree, line - 1)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = compile(tree, file, "exec") if tree.body else None
        return body, compile(ast.Expression(last.value), file, "eval") if last else None

    # -- both --------------------------------------------------------------------------------

    def _begin(self, options: Options, statement: str) -> _RunningRecording:
        cell = self._cells[-1] if self._cells else None
        # The front end's id of a cell survives editing.
        name = getattr(cell, "cell_id", None) or getattr(cell, "raw_cell", "")
        key = (str(name), statement)
        of_cell, earlier = self._earlier.get(key, (cell, None))
        words = "Since its last run"
        if of_cell is cell:
            earlier = None  # the same line in a loop is not another run
        if options.against:
            earlier, words = self.shell.user_ns.get(options.against), f"Since {options.against}"
            if not isinstance(earlier, Recording) or not earlier.has_ended:
                raise self._usage_error(f"--against {options.against}: not a finished recording")
        recording = Recording(options.trace or None)
        try:
            recording.__enter__()
        except QueryprofError as error:
            raise self._usage_error(str(error)) from None
        running = _RunningRecording(recording, cell, key, options, earlier, words)
        self._running.append(running)
        return running

    def _end(self, running: _RunningRecording) -> None:
        """End a recording and show it."""
        if running not in self._running:
            return
        self._running.remove(running)
        recording = running.recording
        try:
            recording.__exit__(*sys.exc_info())
        finally:
            if recording.has_ended:
                self._show(running)

    def _show(self, running: _RunningRecording) -> None:
        from IPython.display import display

        recording = running.recording
        if running.earlier:
            changed = recording.change_since(running.earlier)
            recording.compared = (f"{running.words}: {changed}",)
        self._earlier[running.key] = (running.cell, recording)
        self._earlier.move_to_end(running.key)
        while len(self._earlier) > RUNS_COMPARED:
            self._earlier.popitem(last=False)
        if running.options.name:
            self.shell.user_ns[running.options.name] = recording
        self.last = recording
        display(recording)

    def _options(self, line: str) -> tuple[Options, str]:
        try:
            return read_options(line)
        except ValueError as error:
            raise self._usage_error(str(error)) from None

    @staticmethod
    def _usage_error(message: str) -> Exception:
        """Return an error that IPython shows as one line."""
        from IPython.core.error import UsageError

        error: Exception = UsageError(f"queryprof: {message}")
        return error


def call_cell_magic(lines: list[str]) -> list[str]:
    """Turn the line %%queryprof into a call, so that the lines below it keep their numbers."""
    found = FIRST_LINE.fullmatch(lines[0].rstrip("\n")) if lines else None
    if not found:
        return lines
    from IPython.core import inputtransformer2 as ipythons

    options = (found[1] or "").strip()
    begin = f"get_ipython().run_cell_magic({NAME!r}, {options!r}, {EMPTY_BODY!r})\n"
    rest = ipythons.leading_indent(lines[1:])
    if ipythons.leading_empty_lines(rest)[:1] and ipythons.leading_empty_lines(rest)[0][:2] == "%%":
        rest = ipythons.leading_empty_lines(rest)
    return [begin, *ipythons.cell_magic(rest)]


call_cell_magic.has_side_effects = True  # type: ignore[attr-defined]
"""IPython skips transformations with side effects when it checks whether typed input is complete.
Otherwise the first line of a cell would count as complete.
"""


_loaded: dict[int, Extension] = {}
"""Loaded extensions, by the id of the shell."""


def load_ipython_extension(shell: Any) -> None:
    """Handle %load_ext queryprof."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload_ipython_extension(shell: Any) -> None:
    """Handle %unload_ext queryprof."""
    extension = _loaded.pop(id(shell), None)
    if extension:
        extension.unload()
