"""SQL for a terminal: in colour where it has any, folded, cut."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType

from queryprof.report.inert import visible
from queryprof.report.terminal.console import Text

SQL_LINES = 6
"""A longer statement is cut; `--format json` has it whole."""

LONGEST = 5000
"""Characters that are looked at: colouring a megabyte takes seconds."""


class Sql:
    """A statement, folded to a width and cut after a few lines."""

    def __init__(self, statement: str, width: int) -> None:
        self._statement = statement
        self._width = width

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """What rich prints."""
        shown = self._statement[:LONGEST]
        if console.color_system:
            from rich.syntax import Syntax  # it builds a lexer: a quarter of a small report's time

            syntax = Syntax("", "sql", theme="ansi_dark", background_color="default")
            text = syntax.highlight(visible(shown))
        else:
            text = Text(shown)
        text.rstrip()
        text.no_wrap = False
        lines = text.wrap(console, self._width)
        yield from lines[:SQL_LINES]
        if len(self._statement) > LONGEST:
            yield Text(f"... ({len(self._statement):,} characters)", "dim")
        elif len(lines) > SQL_LINES:
            yield Text(f"... ({len(lines) - SQL_LINES} more lines)", "dim")
