"""A progress bar on stderr, for work that takes more than half a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.progress import Progress

VISIBLE_AFTER_S = 0.5


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step. The bar appears only if the work is slow."""
    started = time.monotonic()
    done = 0
    bar: Progress | None = None

    def step() -> None:
        nonlocal bar, done
        done += 1
        if bar is None and sys.stderr.isatty() and time.monotonic() - started > VISIBLE_AFTER_S:
            bar = _progress_bar(what, steps)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield step
    finally:
        if bar is not None:
            bar.stop()


def _progress_bar(what: str, steps: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=steps)
    return bar
