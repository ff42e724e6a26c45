"""The IPython extension: `%load_ext queryprof` gives %%queryprof and %queryprof.

A cell with %%queryprof runs as every cell does (await, its lines, its last value): its first line
becomes the call that begins the recording, and the event after the cell ends it. Cells may run
inside a cell (%%capture, %run): each event says of which cell it is.
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
from queryprof.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

NAME = "queryprof"
FIRST_LINE = re.compile(r"%%queryprof(?:\s+(.*))?$")
COMMENT = re.compile(r"#.*")

REST = "\n"
"""The body of a cell magic that begins with the cell that runs: IPython needs one."""

RUNS_COMPARED = 20
"""The latest cells and lines whose recordings are kept, to be compared with their next run."""


@dataclass(slots=True)
class _Running:
    """A recording that has begun.

    Attributes:
        cell: the event's description of the cell that it is in.
        key: what identifies the cell, or a line in it, in its next run.
        earlier: what it will be compared with, in these words.
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
        last: the recording that was shown last; None: there is none yet.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.last: Recording | None = None
        self._cells: list[Any] = []  # that run, each inside the one before
        self._running: list[_Running] = []
        self._earlier: OrderedDict[tuple[str, str], tuple[object, Recording]] = OrderedDict()

    # -- its life ----------------------------------------------------------------------------

    def load(self) -> None:
        """Adds the magics to the shell."""
        self.shell.register_magic_function(self._magic(), "line_cell", NAME)
        self.shell.input_transformers_cleanup.append(begin_with_cell)
        self.shell.events.register("pre_run_cell", self.begin_cell)
        self.shell.events.register("post_run_cell", self.end_cell)

    def unload(self) -> None:
        """Takes them away again; what is being recorded ends, and is shown."""
        while self._running:
            self._end(self._running[-1])
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)
        self.shell.input_transformers_cleanup.remove(begin_with_cell)
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
        """Before a cell."""
        self._cells.append(info)

    def cell(self, line: str, cell: str) -> None:
        """Begins the recording of the running cell; or records a cell that is given."""
        options, rest = self._options(line)
        rest = COMMENT.sub("", rest).strip()
        if rest:
            raise self._wrong(
                f"{rest!r}: the statements are on the lines below %%queryprof; -o NAME keeps the"
                " recording in a variable"
            )
        running = self._begin(options, "")
        if cell == REST:
            self._end_at_errors(running)
            return
        try:
            self.shell.run_cell(cell)
        finally:
            self._end(running)

    def end_cell(self, result: Any) -> None:
        """After a cell: ends its recording, and shows it."""
        info = getattr(result, "info", None)
        if not any(one is info for one in self._cells):
            return  # a cell without a beginning: it was empty
        while self._cells.pop() is not info:
            pass
        for running in reversed(self._running.copy()):
            if not any(running.cell is one for one in self._cells):
                try:
                    self._end(running)
                except Exception as error:
                    complain(f"the recording of this cell: {type(error).__name__}: {error}")

    def _end_at_errors(self, running: _Running) -> None:
        """Ends a recording where the cell raises: to show a traceback takes long."""
        shell, show = self.shell, self.shell.showtraceback
        before = shell.__dict__.get("showtraceback")  # another extension's

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
        """Records a statement, and returns its value; without one the last recording."""
        options, statement = self._options(line)
        if not statement:
            if self.last is None:
                raise self._wrong("nothing was recorded yet; %queryprof? shows how")
            return self.last
        body, value = self._compiled(statement)
        names = self.shell.user_ns
        running = self._begin(options, statement)
        try:
            if body:
                exec(body, names, local_ns)
            return eval(value, names, local_ns) if value else None
        finally:
            self._end(running)

    def _compiled(self, statement: str) -> tuple[CodeType | None, CodeType | None]:
        """The statement without its last expression, and that, as of the line that it is on."""
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

    def _begin(self, options: Options, statement: str) -> _Running:
        cell = self._cells[-1] if self._cells else None
        # A front end's number of a cell stays when that is edited.
        name = getattr(cell, "cell_id", None) or getattr(cell, "raw_cell", "")
        key = (str(name), statement)
        of_cell, earlier = self._earlier.get(key, (cell, None))
        words = "Since its last run"
        if of_cell is cell:
            earlier = None  # the same line in a loop is no other run
        if options.against:
            earlier, words = self.shell.user_ns.get(options.against), f"Since {options.against}"
            if not isinstance(earlier, Recording) or not earlier.has_ended:
                raise self._wrong(f"--against {options.against}: is no recording that has ended")
        recording = Recording(options.trace or None)
        try:
            recording.__enter__()
        except QueryprofError as error:
            raise self._wrong(str(error)) from None
        running = _Running(recording, cell, key, options, earlier, words)
        self._running.append(running)
        return running

    def _end(self, running: _Running) -> None:
        """Ends a recording, and shows it."""
        if running not in self._running:
            return
        self._running.remove(running)
        recording = running.recording
        try:
            recording.__exit__(*sys.exc_info())
        finally:
            if recording.has_ended:
                self._show(running)

    def _show(self, running: _Running) -> None:
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
            raise self._wrong(str(error)) from None

    @staticmethod
    def _wrong(message: str) -> Exception:
        """An error that IPython shows as one line."""
        from IPython.core.error import UsageError

        error: Exception = UsageError(f"queryprof: {message}")
        return error


def begin_with_cell(lines: list[str]) -> list[str]:
    """Makes a call of the line %%queryprof, so that the lines below it keep their numbers."""
    found = FIRST_LINE.fullmatch(lines[0].rstrip("\n")) if lines else None
    if not found:
        return lines
    from IPython.core import inputtransformer2 as ipythons

    options = (found[1] or "").strip()
    begin = f"get_ipython().run_cell_magic({NAME!r}, {options!r}, {REST!r})\n"
    rest = ipythons.leading_indent(lines[1:])
    if ipythons.leading_empty_lines(rest)[:1] and ipythons.leading_empty_lines(rest)[0][:2] == "%%":
        rest = ipythons.leading_empty_lines(rest)
    return [begin, *ipythons.cell_magic(rest)]


begin_with_cell.has_side_effects = True  # type: ignore[attr-defined]
"""IPython leaves such a transformation out when it checks if what is typed in a terminal is a
complete cell. With it, the first line of a cell would be one."""


_loaded: dict[int, Extension] = {}
"""By the id of the shell, as long as it is loaded."""


def load_ipython_extension(shell: Any) -> None:
    """For %load_ext queryprof."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload_ipython_extension(shell: Any) -> None:
    """For %unload_ext queryprof."""
    extension = _loaded.pop(id(shell), None)
    if extension:
        extension.unload()
