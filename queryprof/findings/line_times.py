"""The time of a program's line, calculated from its timed passes. A pass is one run of the line."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.analysis.call_sites import MODULE
from queryprof.model import CallPath, LineTime

LOOP_EXECUTIONS = 1.5
"""If one pass of a line makes at least this many executions, the library runs the executions in its
own loop.
"""


MANY_EXECUTIONS = 20
"""With this many executions, a single timed pass does not count: it is often the first one, which
also compiles the query. It took 3.3 and 4.5 times as long as the mean (SQLAlchemy, two programs
with 45 and 70 executions).
"""


def execution_ns(
    times: Sequence[LineTime], rows: int, executions: int, lock_ns: int = 0, max_lock_ns: int = 0
) -> float | None:
    """Return the time of a line per execution of its statement, without the waits for locks.

    A loop over the rows may be timed only in part. Its time per row then counts for all rows.

    Args:
        times: the timed passes, one for each call path.
        rows: the number of rows that all executions returned.
        executions: the number of these executions.
        lock_ns, max_lock_ns: their waits for locks, and the longest wait. It is unknown which of
            them were in a timed pass.

    Returns:
        Nanoseconds. None if the line was not timed, or only once for many executions; if a library
        executes the statement in a loop of its own; or if the line's function is recursive and
        passes may include inner passes.
    """
    passes, timed = sum(one.passes for one in times), sum(one.executions for one in times)
    if passes <= 0 or not passes <= timed < LOOP_EXECUTIONS * passes:
        return None
    if passes == 1 and executions >= MANY_EXECUTIONS:
        return None
    may_nest = timed > passes or any(one.others for one in times)
    if may_nest and any(_is_recursive(one.path) for one in times):
        return None
    ns, loop_ns = sum(one.ns for one in times), sum(one.loop_ns for one in times)
    loop_rows = max(1, sum(one.loop_rows for one in times))
    longest_ns = max_lock_ns if max_lock_ns <= ns else 0
    waited_ns = max(longest_ns, lock_ns * timed / max(1, executions))
    return max(0, ns - loop_ns - waited_ns) / timed + loop_ns / loop_rows * (
        rows / max(1, executions)
    )


def _is_recursive(path: CallPath) -> bool:
    """Return whether the function of the first frame also occurs further out."""
    functions = [(frame.file, frame.function) for frame in path]
    return functions[:1] != [] and functions[0] in functions[1:] and functions[0][1] != MODULE
