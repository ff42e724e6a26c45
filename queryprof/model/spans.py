"""The slowest spans of each name, with their driver calls in order."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class SpanRun:
    """Consecutive calls of a span with the same statement, call path and thread.

    Attributes:
        statement: "(other)" for all runs after the first 63.
        span: the innermost span around the calls.
        start_ns: time from the start of the slow span to the first call.
        end_ns: time from the start of the slow span to the end of the last call, including its
            fetches; 0 if the call ended after the span.
        executions: number of calls, except fetches.
        self_ns: time in the driver.
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
        thread: the thread that began the span.
        database_ns: time in the driver, including inner spans and other threads.
        executions: number of calls of execute, executemany and executescript.
        failed: whether the span ended with an exception.
        status: HTTP status; None without one.
        runs: the span's calls by start; empty if the span made no calls, or if memory was full.
        queue_ns: minimum time that the span's functions waited for a free thread; None if unknown.
        cpu_ns: CPU time of the span's thread during the span; None if unknown.
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
