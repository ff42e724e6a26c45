"""Calls of queryprof's public functions, each with some database work."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import queryprof as q

Call = Callable[[], object]
TIMEOUT_S = 60


def work() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (x)")
    db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    assert list(db.execute("SELECT * FROM t")) == [(1,), (2,)]
    db.close()


def drive(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that waits for nothing, without an event loop."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def in_threads(*calls: Call) -> None:
    errors: list[BaseException] = []

    def run(call: Call) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def span() -> None:
    with q.span("s"):
        work()


def nested_spans() -> None:
    with q.span("a"), q.span("b"):
        work()


def one_span_twice() -> None:
    s = q.span("same")
    with s, s:
        work()


def span_shared_by_threads() -> None:
    s = q.span("shared")
    both_in = threading.Barrier(2)

    def enter() -> None:
        with s:
            both_in.wait(TIMEOUT_S)
            work()
            both_in.wait(TIMEOUT_S)

    in_threads(enter, enter)


def span_raises() -> None:
    try:
        with q.span("s"):
            raise LookupError
    except LookupError:
        return
    raise AssertionError("the exception is lost")


def span_ended_elsewhere() -> None:
    """One span ends in another context than its begin, and another was never entered."""
    s = q.span("far")
    s.__enter__()
    in_threads(lambda: s.__exit__(None, None, None))
    s.__exit__(None, None, None)


def span_methods() -> None:
    s = q.span("request")
    s.set_status(500)
    assert s.figures() == (0, 0)
    with s:
        s.set_status(200)
        work()
        s.figures()


def span_decorator() -> None:
    @q.span("d")
    def f() -> int:
        work()
        return 1

    assert f() + f() == 2


def span_on_a_coroutine() -> None:
    @q.span("d")
    async def f() -> None:
        work()
        await asyncio.sleep(0)

    drive(f())


def watch() -> None:
    async def f() -> int:
        return 1

    drive(q.span("w").watch(f()))


def install_again() -> None:
    q.install("v.qprof")
    work()
    q.install("w.qprof")


def uninstall_twice() -> None:
    q.uninstall()
    work()
    q.uninstall()


def install_and_uninstall() -> None:
    for i in range(3):
        q.install(f"v{i}.qprof")
        work()
        q.uninstall()
        work()


def install_where_nothing_can_be_written() -> None:
    q.install("/proc/no/such.qprof")


def install_beside_uninstall() -> None:
    """Two threads start and stop the recording, and one works in spans."""
    is_over = threading.Event()

    def change() -> None:
        for i in range(5):
            q.install(f"beside-{threading.get_ident()}-{i}.qprof")
            q.uninstall()
        is_over.set()

    def ask() -> None:
        while not is_over.is_set():
            span()

    in_threads(change, change, ask)


def profile() -> None:
    with q.profile() as p:
        work()
    with open(os.devnull, "w") as nowhere:
        p.report(nowhere)


def profile_to_a_file() -> None:
    with q.profile("x.qprof") as p:
        work()
    assert p.profile.aggregates or p._refusal


def profile_in_profile() -> None:
    with q.profile() as outer:
        work()
        with q.profile() as inner:
            work()
    for p in (outer, inner):
        assert p._refusal or sum(
            a.count for a in p.profile.aggregates if a.operation == "executemany"
        )


def profile_that_is_uninstalled() -> None:
    with q.profile() as p:
        work()
        q.uninstall()
    assert p.profile


def profile_read_too_early() -> None:
    with q.profile() as p:
        work()
        p.report()


def wsgi() -> None:
    def app(environ: dict[str, str], start: Any) -> list[bytes]:
        start("200 OK", [])
        work()
        return [b"x"]

    wrapped = q.WsgiMiddleware(app, server_timing=True)
    request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
    assert list(wrapped(request, lambda *_: None)) == [b"x"]


def asgi() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        work()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, str]:
        return {}

    async def send(message: Any) -> None:
        pass

    wrapped = q.AsgiMiddleware(app, server_timing=True)
    drive(wrapped({"type": "http", "method": "GET", "path": "/"}, receive, send))


CALLS: list[Call] = [
    span,
    nested_spans,
    one_span_twice,
    span_shared_by_threads,
    span_raises,
    span_ended_elsewhere,
    span_methods,
    span_decorator,
    span_on_a_coroutine,
    watch,
    q.loop_lag,
    q.is_installed,
    lambda: q.instrument("sqlite3"),
    lambda: q.instrument("no_such_driver"),
    q.uninstall,
    uninstall_twice,
    q.install,
    install_again,
    install_and_uninstall,
    install_where_nothing_can_be_written,
    install_beside_uninstall,
    profile,
    profile_to_a_file,
    profile_in_profile,
    profile_that_is_uninstalled,
    profile_read_too_early,
    wsgi,
    asgi,
]
WAITING = (span_shared_by_threads, install_beside_uninstall)
"""Calls that wait for other threads."""
