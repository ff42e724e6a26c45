"""Where in the program something was: frames, call paths, threads."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the program; `line` is 0 when unknown, `kind` user, library or standard; the
    function begins at `first_line` (0: unknown).
    """

    function: str
    file: str
    line: int
    kind: str = "user"
    first_line: int = field(default=0, compare=False)


OTHER_LINE = Frame("(other)", "", 0, "library")
"""What came after the recording's table of lines was full."""

ENDLESS = Frame("(endless)", "", 0)
"""In place of a loop's line: the loop ends with the program, or with a task of it."""

CallPath = tuple[Frame, ...]
"""Frames, innermost first; empty when nothing is known."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a process, by its name in `threading`."""

    process_id: int
    name: str
