"""An intact trace."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from queryprof.cli.main import main
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE


def write_trace(path: str) -> None:
    """Write a trace with at least one row in every table."""
    store = TraceStore(path)
    with store.transaction():
        values = (
            dict.fromkeys(TABLE["process"].names, 1)
            | dict.fromkeys(("host", "directory", "python_version", "sqlite_version"), "x")
            | {"queryprof_version": "x", "clock": "x", "argv": '["python"]', "counters_off": None}
            | {"unmeasured": '["pymysql"]'}
            | {"start_unix_ns": 10**18, "end_unix_ns": 10**18 + 10**10}
        )
        (process,) = store.add("process", [list(values.values())])
        thread, span = store.id("thread", process, "MainThread"), store.id("span", "GET /")
        main = store.id("frame", "main", "/x/main.py", 3, "user", 1)
        for number in range(3):
            statement = store.id("statement", f"SELECT {'a' * number}", "a note", "sqlite")
            inner = store.id("frame", f"f{number}", "/x/main.py", number, "user", 0)
            stack = store.id("stack", f"{inner},{main}")
            by, key = (statement, stack), (statement, stack, span, thread, "execute")
            sums = [9, 1, 2, 10**9, 10**9, 9, 9, 9, 1e18, 9, 5, 1, 0, 0, 1, 1]
            (aggregate,) = store.add("aggregate", [(*key, *sums)])
            store.add("histogram", [(aggregate, 100, 1), (aggregate, 110, 8)])
            store.add("recent_call", [(aggregate, 10**18 + number, 9, 0)])
            store.add("open_call", [(*key, 10**18 + number)])
            store.add("error", [(*by, "execute", "sqlite3.OperationalError", 1)])
            store.add("exemplar", [(*key, 10**18, 9, 1, stack, "SELECT 1", "()")])
            store.add("file_work", [(*key, 9, 1, 10**8, 10**8, 9, 10**7, 4096, 10**6, 8192, 10**7)])
            lock = ("write", "shop.db", *by, span, thread, *by)
            store.add("lock_hold", [(*lock, 3, 10**9, 10**8, 10**7, 10**9, 12, 4096)])
            store.add("lock_event", [(*lock, 10**18, 10**8, 3, 0)])
            store.add("statement_use", [(statement, 5)])
            store.add("parameter_sample", [(*by, 9, 8, 3, 60, 2, 1)])
            store.add("line_time", [(*by, 3, 3, 0, 10**9, 0, 50, 10**8)])
            store.add("source", [(f"/x/{number}.py", "0" * 64, 9)])
            store.add("stack_sample", [(*by, 64, 10**9)])
            tree = "SCAN t\n  USE TEMP B-TREE FOR ORDER BY\n"
            store.add("plan", [(statement, ":memory:", tree)])
            store.add("span_repeat", [(span, *by, 1, 20, 20)])
            (handoff,) = store.add("handoff", [("aiosqlite", stack, span, 3, 0, 0)])
            store.add("handoff_time", [(handoff, "queue", 3, 9, 4)])
            store.add("handoff_histogram", [(handoff, "queue", 3, 3)])
            (loop,) = store.add("loop", [("asyncio", thread, 1, 1, 10**10, 10**9, 50, 60, 4)])
            store.add("lag", [(loop, "beat", 9, 10**9, 10**8)])
            store.add("lag_histogram", [(loop, "beat", 300, 9)])
            (step,) = store.add("step", [(loop, main, 9, 10**9, 10**8, 10**8, 0)])
            store.add("step_histogram", [(step, 300, 9)])
            store.add("step_cause", [(step, *by, 2, 10**8)])
            sums = [2, 10**9, 10**9, 10**8, 0, 0, 10**8, 10**9, 3, 10**8, 5]
            (stall,) = store.add("stall", [(loop, main, stack, stack, *sums)])
            store.add("stall_cause", [(stall, *by, 2, 10**8)])
            store.add("stall_event", [(loop, main, stack, stack, 10**18, 10**8)])
            slow = (span, thread, 10**18, 10**9, 10**8, 3, 0, 200, 10**7, 10**8)
            (slowest,) = store.add("span_slowest", [slow])
            store.add("span_run", [(slowest, 0, *key, 10**6, 10**8, 3, 10**7, 5)])
        store.add("span_total", [(span, 9, 1, 9, 10**9, 10**9, 10**10, 10**9, 27, 5)])
        store.add("span_histogram", [(span, "duration", 300, 9), (span, "queries", 3, 9)])
        store.add("span_status", [(span, 200, 9)])
        store.add("thread_usage", [(thread, 10**9, 10**8, 5, 5, 1000, 1000, 5, 5)])
        seconds = [10**18 + second * 10**9 for second in range(6)]
        usage = [(thread, second, 10**8, 10, 10) for second in seconds]
        store.add_intervals("thread_timeline", 10**9, usage)
        store.add_intervals("timeline", 1 << 27, [(second, 2, 2, 10**8) for second in seconds])
    store.close()


@pytest.fixture
def good() -> Path:
    path = Path("good.qprof")
    write_trace(str(path))
    return path


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process. Return its exit status and its output."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["queryprof", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        gc.enable()  # `report` turns it off, because its process ends
        return (code if isinstance(code, int) else 0, *capfd.readouterr())

    return run
