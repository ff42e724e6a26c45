"""Locations in the program: frames, call paths and threads."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the program, with its function.

    Attributes:
        line: 0 if unknown.
        kind: "user", "library" or "standard".
        first_line: first line of the function; 0 if unknown.
    """

    function: str
    file: str
    line: int
    kind: str = "user"
    first_line: int = field(default=0, compare=False)


OTHER_LINE = Frame("(other)", "", 0, "library")
"""Stands for all lines that no longer fit in the recording's table of lines."""

ENDLESS = Frame("(endless)", "", 0)
"""Stands for the line of a loop that runs until the program, or one of its tasks, ends."""

CallPath = tuple[Frame, ...]
"""Frames, innermost first; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a process, by its name in `threading`."""

    process_id: int
    name: str
