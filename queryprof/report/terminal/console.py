"""The parts that all reports for a terminal share: the console, its texts and tables, and how they
are written.

Reports build texts and tables with the classes of this module alone: these show every string as it
is, with its control characters visible (queryprof.report.inert), and rich finds no markup in it.
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

from queryprof.report.inert import visible


class Text(rich.text.Text):
    """A line of text: a line end in a string is shown as an escape, too."""

    def __init__(self, text: str = "", style: str | Style = "", **options: Any) -> None:
        super().__init__(visible(text), style, **options)

    def append(
        self, text: rich.text.Text | str, style: str | Style | None = None
    ) -> rich.text.Text:
        """Adds a string or text at the end."""
        return super().append(visible(text) if isinstance(text, str) else text, style)


class Table(rich.table.Table):
    """A table whose cells are Texts."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Adds a row; strings become Texts."""
        super().add_row(*(Text(c) if isinstance(c, str) else c for c in cells), **options)


LEAST_COLUMNS, USUAL_COLUMNS, MOST_COLUMNS = 20, 80, 10_000


class _Console(Console):
    """One whose reader may end first."""

    def on_broken_pipe(self) -> NoReturn:
        """Leaves the exit status to the command; rich's own is 1."""
        raise BrokenPipeError


def console_for(
    file: TextIO | None = None, width: int | None = None, plain: bool = False
) -> Console:
    """A console that writes to a file (standard output), with the terminal's colours and width;
    `plain`: without colours, whatever FORCE_COLOR is for the terminal.
    """
    columns = os.environ.get("COLUMNS", "")
    if width is None and columns.isdecimal() and not LEAST_COLUMNS <= int(columns) <= MOST_COLUMNS:
        width = USUAL_COLUMNS  # 0 is what some terminals and services give for an unknown width
    options: dict[str, Any] = {"highlight": False, "soft_wrap": False, "emoji": False}
    if plain:
        options |= {"color_system": None, "force_jupyter": False, "force_terminal": False}
    console = _Console(file=file, width=width, markup=False, **options)
    if console.is_jupyter:  # it shows what is printed as a terminal does
        options |= {"force_jupyter": False, "force_terminal": file is None}
        console = _Console(file=file, width=console.width, markup=False, **options)
    return console


def write(console: Console, parts: Iterable[RenderableType]) -> None:
    """Prints without the spaces that rich pads lines with: a file needs none."""
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    for line in capture.get().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.flush()


def heading(text: str, style: str = "bold") -> RenderableType:
    """A line of text below an empty one."""
    return Padding(Text(text, style), (1, 0, 0, 0))


def lines_of(texts: Iterable[str]) -> RenderableType:
    """Each string on its own line."""
    return Group(*map(Text, texts))


def plain_table(title: str) -> Table:
    """An empty table without lines."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="underline",
    )
