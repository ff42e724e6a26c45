"""What all reports for a terminal share: the console, its tables, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Table


def console_for(file: TextIO | None = None, width: int | None = None) -> Console:
    """A console that writes to a file (standard output): colours and width are the terminal's."""
    return Console(file=file, width=width, highlight=False, soft_wrap=False, emoji=False)


def write(console: Console, parts: Iterable[RenderableType]) -> None:
    """Prints without the spaces that rich fills lines up with: a file needs none."""
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    for line in capture.get().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.flush()


def plain_table(title: str) -> Table:
    """An empty table without lines."""
    return Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0),
        pad_edge=False, show_edge=False, header_style="underline",
    )  # fmt: skip
