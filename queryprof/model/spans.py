"""The slowest spans of each name: their driver calls, in order."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class SpanRun:
    """Calls of a span that follow each other with one statement, call path and thread.

    Attributes:
        statement: "(other)": all runs after the first 63.
        span: the innermost one around the calls.
        start_ns: of the first call, since the slow span began; end_ns: of the last, its fetches
            included; 0: it had not ended when the span did.
        executions: calls, those that fetch left out.
        self_ns: in the driver.
    """

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    start_ns: int
    end_ns: int
    executions: int
    self_ns: int
    rows: int


@dataclass(frozen=True, slots=True)
class SlowSpan:
    """One of the slowest spans of its name.

    Attributes:
        thread: that began it.
        database_ns: in the driver, inner spans and other threads included.
        executions: execute, executemany and executescript.
        failed: an exception left it.
        status: of an HTTP response; None: none.
        runs: by their start; empty: it had none, or there was no room.
        queue_ns: functions that it handed to threads waited for one, at the least; cpu_ns: of its
            thread while it ran. None: unknown.
    """

    name: str
    thread: Thread
    started_unix_ns: int
    duration_ns: int
    database_ns: int
    executions: int
    failed: bool
    status: int | None
    runs: tuple[SpanRun, ...]
    queue_ns: int | None = None
    cpu_ns: int | None = None
