"""What is known of some executions of a statement: their parameters, the program's line around
them, and what the database measured itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class ParameterSample:
    """Of a sample of a statement's executions: how many had the parameters of one shortly before,
    with nothing written in between.
    """

    statement: str
    path: CallPath
    samples: int
    repeats: int


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


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a statement's plan, as DuckDB's own profiler measured it.

    Attributes:
        plan: a number that all operators of one tree have: a statement may have several.
        place: in the tree: the numbers of the branches from the root to it, with dots between.
        executions: whose profile was read; unfinished: of these, whose rows the program did not
            read to the end: the figures are the least.
        rows: that it returned; scanned: that it read from a table or file.
        ns: in it, without those that it reads from, in all threads together.
    """

    statement: str
    plan: int
    place: str
    name: str
    executions: int
    unfinished: int
    rows: int
    scanned: int
    ns: int

    @property
    def depth(self) -> int:
        """How many operators are above it."""
        return self.place.count(".")
