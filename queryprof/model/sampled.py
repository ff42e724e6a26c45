"""What is known of some executions of a statement: their parameters, the program's line around
them, and what the database measured itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class ParameterSample:
    """What the values given to a sample of a statement's executions have shown.

    Attributes:
        samples: executions whose values were looked at.
        repeats: of these, with the values of one shortly before, and nothing written in between.
        offsets: of these, whose text ends with an OFFSET that is known; skipped: the sum of it.
        open_patterns: of these, with a value that begins with a wildcard of LIKE or GLOB.
    """

    statement: str
    path: CallPath
    samples: int
    repeats: int
    offsets: int = 0
    skipped: int = 0
    open_patterns: int = 0


@dataclass(frozen=True, slots=True)
class LineTime:
    """Some passes of the program's line that executes a statement through a library. The library
    builds the statement, calls the driver, makes objects of the rows and may commit.

    Attributes:
        passes: that were timed.
        executions: of the statement in these passes; others: of other statements.
        ns: of these passes.
    """

    statement: str
    path: CallPath
    passes: int
    executions: int
    others: int
    ns: int
