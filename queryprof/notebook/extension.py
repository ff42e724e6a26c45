"""The IPython extension: `%load_ext queryprof` gives %%queryprof and %queryprof.

A cell with %%queryprof runs as every cell does (await, its lines, its last value): its first line
becomes the call that begins the recording, and the event after the cell ends it.
"""

from __future__ import annotations

import ast
import re
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

REST = "\n"
"""The body of a cell magic that begins with the cell that runs: IPython wants one."""

CELLS_COMPARED = 20
"""The latest cells whose recordings are kept, to be compared with their next run."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A recording that has begun: the variable for it, and what it will be compared with."""

    recording: Recording
    name: str
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
        self._open: _Open | None = None
        self._cell = ""  # what identifies the running one
        self._earlier: OrderedDict[str, Recording] = OrderedDict()

    # -- its life ----------------------------------------------------------------------------

    def load(self) -> None:
        """Adds the magics to the shell."""
        magic = self._magic
        self.shell.register_magic_function(magic, "line_cell", NAME)
        self.shell.input_transformers_cleanup.append(self.begin_with_cell)
        self.shell.events.register("pre_run_cell", self.note_cell)
        self.shell.events.register("post_run_cell", self.end_with_cell)

    def unload(self) -> None:
        """Takes them away again."""
        self._close()
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)
        self.shell.input_transformers_cleanup.remove(self.begin_with_cell)
        self.shell.events.unregister("pre_run_cell", self.note_cell)
        self.shell.events.unregister("post_run_cell", self.end_with_cell)

    @property
    def _magic(self) -> Any:
        def queryprof(line: str, cell: str | None = None, local_ns: Any = None) -> object:
            if cell is None:
                return self.line(line, local_ns)
            self.cell(line, cell)
            return None

        queryprof.__doc__ = USAGE
        queryprof.needs_local_scope = True  # type: ignore[attr-defined]
        return queryprof

    # -- a cell ------------------------------------------------------------------------------

    @staticmethod
    def begin_with_cell(lines: list[str]) -> list[str]:
        """Makes a call of the line %%queryprof, so that the lines below it keep their numbers."""
        found = FIRST_LINE.fullmatch(lines[0].rstrip("\n")) if lines else None
        if not found:
            return lines
        from IPython.core.inputtransformer2 import cell_magic

        options = (found[1] or "").strip()
        begin = f"get_ipython().run_cell_magic({NAME!r}, {options!r}, {REST!r})\n"
        return [begin, *cell_magic(lines[1:])]

    def note_cell(self, info: Any) -> None:
        """Before a cell: which it is. A front end's number of it stays when it is edited."""
        self._cell = getattr(info, "cell_id", None) or str(getattr(info, "raw_cell", ""))

    def cell(self, line: str, cell: str) -> None:
        """Begins the recording of the running cell; or records a cell that is given."""
        options, rest = self._options(line)
        if rest:
            raise self._wrong(f"{rest!r}: the statements are on the lines below %%queryprof")
        self._begin(options)
        if cell != REST:
            self.shell.run_cell(cell)
            self._end()

    def end_with_cell(self, _result: Any = None) -> None:
        """After a cell: ends its recording, and shows it."""
        try:
            self._end()
        except Exception as error:
            complain(f"the recording of this cell is lost: {type(error).__name__}: {error}")

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
        outer, self._open = self._open, None  # of %%queryprof around it
        self._begin(options)
        try:
            if body:
                exec(body, names, local_ns)
            return eval(value, names, local_ns) if value else None
        finally:
            self._end()
            self._open = outer

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

    def _begin(self, options: Options) -> None:
        self._close()
        earlier, words = self._earlier.get(self._cell), "Since its last run"
        if options.against:
            earlier, words = self.shell.user_ns.get(options.against), f"Since {options.against}"
            if not isinstance(earlier, Recording):
                raise self._wrong(f"--against {options.against}: is no recording")
        recording = Recording(options.trace or None)
        try:
            recording.__enter__()
        except QueryprofError as error:
            raise self._wrong(str(error)) from None
        self._open = _Open(recording, options.name, earlier, words)

    def _end(self) -> None:
        """Ends the recording, if one has begun, and shows it."""
        if self._open is None:
            return
        now, self._open = self._open, None
        now.recording.__exit__(None, None, None)
        if now.earlier:
            changed = now.recording.change_since(now.earlier)
            now.recording.compared = (f"{now.words}: {changed}",)
        self._earlier[self._cell] = self.last = now.recording
        self._earlier.move_to_end(self._cell)
        while len(self._earlier) > CELLS_COMPARED:
            self._earlier.popitem(last=False)
        if now.name:
            self.shell.user_ns[now.name] = now.recording
        from IPython.display import display

        display(now.recording)

    def _close(self) -> None:
        """Ends a recording that no event has ended."""
        if self._open is not None:
            now, self._open = self._open, None
            now.recording.__exit__(None, None, None)

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
