"""Facts from a sample of a statement's executions.

They cover the parameters, and the program line that executes the statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class ParameterSample:
    """Patterns in the parameters of a sample of a statement's executions.

    Attributes:
        samples: sampled executions.
        repeats: samples with the same values as shortly before, and no write in between.
        offsets: samples whose text ends with a known OFFSET.
        skipped: sum of these OFFSETs.
        open_patterns: samples with a value that begins with a wildcard of LIKE or GLOB.
        slow: samples that were taken because the execution was slow. Their offsets and patterns
            do not count.
    """

    statement: str
    path: CallPath
    samples: int
    repeats: int
    offsets: int = 0
    skipped: int = 0
    open_patterns: int = 0
    slow: int = 0


@dataclass(frozen=True, slots=True)
class LineTime:
    """Sampled passes (runs) of a program line that executes a statement through a library.

    The library builds the statement, calls the driver, makes objects from the rows and may commit.

    Attributes:
        passes: number of timed passes.
        executions: executions of the statement in these passes.
        others: executions of other statements in these passes.
        ns: time of these passes.
        left_out_ns: duration of the longest ignored pass, which was interrupted or whose start was
            not seen; 0 if there is none.
        loop_rows: rows of loops that were timed only in part, as far as timed.
        loop_ns: time of the line for these rows, without the execution.
    """

    statement: str
    path: CallPath
    passes: int
    executions: int
    others: int
    ns: int
    left_out_ns: int = 0
    loop_rows: int = 0
    loop_ns: int = 0
