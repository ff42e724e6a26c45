"""SQL for a terminal: coloured, folded and cut."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType

from queryprof.report.inert import escape_control_characters
from queryprof.report.terminal.console import Text

SQL_LINES = 6
"""Maximum number of lines shown of a statement; `--format json` prints whole statements."""

MAX_CHARACTERS = 5000
"""Maximum number of characters shown of a statement: colouring a megabyte takes seconds."""


class SqlText:
    """A statement, folded to a width and cut after SQL_LINES lines."""

    def __init__(self, statement: str, width: int) -> None:
        self._statement = statement
        self._width = width

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the lines for rich."""
        shown = self._statement[:MAX_CHARACTERS]
        if console.color_system:
            # late, because building the lexer takes a quarter of a small report's time
            from rich.syntax import Syntax

            syntax = Syntax("", "sql", theme="ansi_dark", background_color="default")
            text = syntax.highlight(escape_control_characters(shown))
        else:
            text = Text(shown)
        text.rstrip()
        text.no_wrap = False
        lines = text.wrap(console, self._width)
        yield from lines[:SQL_LINES]
        if len(self._statement) > MAX_CHARACTERS:
            yield Text(f"... ({len(self._statement):,} characters)", "dim")
        elif len(lines) > SQL_LINES:
            yield Text(f"... ({len(lines) - SQL_LINES} more lines)", "dim")
