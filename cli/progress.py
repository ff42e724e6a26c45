"""A progress bar on stderr for work that takes more than half a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

VISIBLE_AFTER_S = 0.5


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call after each step; the bar comes only if the work is slow."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console,
        transient=True,
    )  # fmt: skip
    task = bar.add_task(what, total=steps)
    started = time.monotonic()
    visible = False

    def step() -> None:
        nonlocal visible
        if not visible and console.is_terminal and time.monotonic() - started > VISIBLE_AFTER_S:
            visible = True
            bar.start()
        bar.advance(task)

    try:
        yield step
    finally:
        if visible:
            bar.stop()
