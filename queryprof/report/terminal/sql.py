"""SQL for a terminal: in colour, folded, cut."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType

from queryprof.report.inert import visible
from queryprof.report.terminal.console import Text

SQL_LINES = 6
"""A longer statement is cut; `--format json` has it whole."""

LONGEST = 5000
"""Characters that are looked at: colouring a megabyte takes seconds."""


def highlighted(statement: str, width: int) -> RenderableType:
    """The statement in colour, folded to the width and cut after a few lines."""
    from rich.syntax import Syntax  # it imports lexers: slow for a report without statements

    text = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(
        visible(statement[:LONGEST])
    )
    text.rstrip()
    text.no_wrap = False
    lines = text.wrap(Console(width=width), width)
    if len(statement) > LONGEST:
        more = f"... ({len(statement):,} characters)"
        return Group(*lines[:SQL_LINES], Text(more, "dim"))
    if len(lines) > SQL_LINES:
        more = f"... ({len(lines) - SQL_LINES} more lines)"
        return Group(*lines[:SQL_LINES], Text(more, "dim"))
    return Group(*lines)
