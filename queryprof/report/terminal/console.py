"""Shared parts of all terminal reports: the console, texts, tables and output.

Reports build text and tables only with the classes of this module. These classes escape control
characters (queryprof.report.inert), and rich interprets no markup in their texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NoReturn, TextIO

import rich.table
import rich.text
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style

from queryprof.report.inert import escape_control_characters


class Text(rich.text.Text):
    """A line of text. Control characters, including line ends, are escaped."""

    def __init__(self, text: str = "", style: str | Style = "", **options: Any) -> None:
        super().__init__(escape_control_characters(text), style, **options)

    def append(
        self, text: rich.text.Text | str, style: str | Style | None = None
    ) -> rich.text.Text:
        """Add a string or text at the end."""
        return super().append(
            escape_control_characters(text) if isinstance(text, str) else text, style
        )


class TextTable(rich.table.Table):
    """A table whose cells are Texts."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; strings become Texts."""
        super().add_row(*(Text(c) if isinstance(c, str) else c for c in cells), **options)


MIN_COLUMNS, DEFAULT_COLUMNS, MAX_COLUMNS = 20, 80, 10_000


class _Console(Console):
    """A console whose reader may close the output early, as `head` does."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, so that the command decides its exit status; rich exits with 1."""
        raise BrokenPipeError


def console_for(
    file: TextIO | None = None, width: int | None = None, plain: bool = False
) -> Console:
    """Return a console for a file (default: standard output), in the terminal's colours and width.

    Args:
        plain: never use colours, not even with FORCE_COLOR.
    """
    columns = os.environ.get("COLUMNS", "")
    if width is None and columns.isdecimal() and not MIN_COLUMNS <= int(columns) <= MAX_COLUMNS:
        width = DEFAULT_COLUMNS  # some terminals and services report an unknown width as 0
    options: dict[str, Any] = {"highlight": False, "soft_wrap": False, "emoji": False}
    if plain:
        options |= {"color_system": None, "force_jupyter": False, "force_terminal": False}
    console = _Console(file=file, width=width, markup=False, **options)
    if console.is_jupyter:  # Jupyter shows printed text like a terminal
        options |= {"force_jupyter": False, "force_terminal": file is None}
        console = _Console(file=file, width=console.width, markup=False, **options)
    return console


def print_parts(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print the parts without the trailing spaces that rich adds."""
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    for line in capture.get().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.flush()


def heading_line(text: str, style: str = "bold") -> RenderableType:
    """Return a line of text with an empty line above."""
    return Padding(Text(text, style), (1, 0, 0, 0))


def separate_lines(texts: Iterable[str]) -> RenderableType:
    """Return a renderable with one line per string."""
    return Group(*map(Text, texts))


def borderless_table(title: str) -> TextTable:
    """Return an empty table without borders."""
    return TextTable(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="underline",
    )
