"""Facts from a sample of a statement's executions: about the parameters, and about the time of the
program line that executes the statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class ParameterSample:
    """Counts of certain parameter values among sampled executions of a statement.

    Attributes:
        samples: number of sampled executions.
        repeats: samples with the same values as a recent execution, without a write in between.
        offsets: samples whose text ends with a known OFFSET.
        skipped: sum of these OFFSETs.
        open_patterns: samples with a value that begins with a wildcard of LIKE or GLOB.
        slow: samples that were taken because the execution was slow. `offsets`, `skipped` and
            `open_patterns` ignore these samples.
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
    """Time of sampled passes (runs) of a program line that executes a statement through a library.

    The library builds the statement, calls the driver, makes objects from the rows and may commit.

    Attributes:
        passes: number of timed passes.
        executions: executions of the statement in these passes.
        others: executions of other statements in these passes.
        ns: total time of these passes.
        left_out_ns: duration of the longest ignored pass; 0 if there is none. A pass is ignored if
            it was interrupted, or if its start was not seen.
        loop_rows: number of rows in the timed parts of loops that were timed only in part.
        loop_ns: time of the line for `loop_rows`, without the execution.
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
