"""A program that calls public functions in one state of recording.

    public_functions.py STATE [FIRST STEP]    makes every STEP-th call from the FIRST on, or all
    public_functions.py --list                prints the states

Each call runs in its own forked child, which ends like a program. A line shows how each one ended;
"ok" is the expected result.
"""

from __future__ import annotations

import asyncio
import atexit
import faulthandler
import gc
import os
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from public_calls import CALLS, TIMEOUT_S, WAITING, Call, in_threads, work

import queryprof as q

# -- the states --------------------------------------------------------------------------------


def in_a_child(act: Call) -> None:
    pid = os.fork()
    if not pid:
        act()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, "the child"


def in_a_finalizer(act: Call) -> None:
    class Finalized:
        def __del__(self) -> None:
            act()

    finalized: Any = Finalized()
    finalized.me = finalized
    del finalized
    gc.collect()


def in_a_signal_handler(act: Call) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: act())
    os.kill(os.getpid(), signal.SIGUSR1)


def in_a_coroutine(act: Call) -> None:
    async def main() -> None:
        act()
        await asyncio.sleep(0)

    asyncio.run(main())


def in_a_function_of_sqlite(act: Call) -> None:
    db = sqlite3.connect(":memory:")
    db.create_function("act", 0, lambda: act() or 1)
    assert db.execute("SELECT act()").fetchall() == [(1,)]
    db.close()


def in_a_trace_function(act: Call) -> None:
    """The state is the first event of a function that is traced, as by a debugger."""

    def trace(*_: object) -> None:
        sys.settrace(None)
        act()

    sys.settrace(trace)
    work()
    sys.settrace(None)


def with_an_open_cursor(act: Call) -> None:
    db = sqlite3.connect(":memory:")
    cursor = db.execute("SELECT 1 UNION SELECT 2")
    assert next(cursor) == (1,)
    act()
    q.uninstall()
    assert list(cursor) == [(2,)]
    db.close()


def after_a_failed_start(act: Call) -> None:
    try:
        q.install("/proc/no/such.qprof")
    except q.QueryprofError:
        act()


def inside_install(act: Call) -> None:
    """A signal handler runs while recording starts."""
    from queryprof.recorder.session import session

    attach = session.libraries.attach

    def attach_and_act() -> None:
        session.libraries.attach = attach  # type: ignore[method-assign]
        attach()
        act()

    session.libraries.attach = attach_and_act  # type: ignore[method-assign]
    q.install("t.qprof")


def inside_uninstall(act: Call) -> None:
    from queryprof.recorder.session import session

    detach = session.libraries.detach

    def detach_and_act() -> None:
        session.libraries.detach = detach  # type: ignore[method-assign]
        detach()
        act()

    q.install("t.qprof")
    session.libraries.detach = detach_and_act  # type: ignore[method-assign]
    q.uninstall()


def in_profile(act: Call) -> None:
    with q.profile("t.qprof"):
        act()


def after_profile(act: Call) -> None:
    with q.profile():
        work()
    act()


def across_install(act: Call) -> None:
    s = q.span("early")
    s.__enter__()
    q.install("t.qprof")
    act()
    s.__exit__(None, None, None)


def across_uninstall(act: Call) -> None:
    q.install("t.qprof")
    s = q.span("late")
    s.__enter__()
    q.uninstall()
    act()
    s.__exit__(None, None, None)


def in_a_child_of_a_span(act: Call) -> None:
    q.install("t.qprof")
    with q.span("outer"):
        in_a_child(act)


def at_exit_before_ours(act: Call) -> None:
    q.install("t.qprof")
    atexit.register(act)


def at_exit_after_ours(act: Call) -> None:
    atexit.register(act)
    q.install("t.qprof")


def recording(state: Callable[[Call], object]) -> Callable[[Call], None]:
    def entered(act: Call) -> None:
        q.install("t.qprof")
        state(act)

    return entered


def recorded(state: Callable[[Call], object]) -> Callable[[Call], None]:
    def entered(act: Call) -> None:
        q.install("t.qprof")
        work()
        q.uninstall()
        state(act)

    return entered


def here(act: Call) -> None:
    act()


PLACES: list[Callable[[Call], object]] = [
    here,
    in_threads,
    in_a_child,
    in_a_finalizer,
    in_a_signal_handler,
    in_a_coroutine,
    in_a_function_of_sqlite,
    in_a_trace_function,
    atexit.register,
    with_an_open_cursor,
]
STATES: dict[str, Callable[[Call], object]] = {
    **{f"never recorded, {place.__name__}": place for place in PLACES},
    **{f"recording, {place.__name__}": recording(place) for place in PLACES},
    **{f"recorded before, {place.__name__}": recorded(place) for place in PLACES[:3]},
    "recorded again": recorded(recording(here)),
    **{
        state.__name__: state
        for state in (
            after_a_failed_start,
            inside_install,
            inside_uninstall,
            in_profile,
            after_profile,
            across_install,
            across_uninstall,
            in_a_child_of_a_span,
            at_exit_before_ours,
            at_exit_after_ours,
        )
    },
}


# -- the processes -----------------------------------------------------------------------------


def guarded(call: Call) -> Call:
    """Run the call. It may raise only queryprof's own exceptions."""

    def act() -> None:
        try:
            call()
        except q.QueryprofError:
            pass
        except BaseException:
            traceback.print_exc()
            os._exit(3)

    return act


def status_of(state: str, call: Call) -> int:
    """Return the status of a child that makes a call in a state, as `os.waitstatus_to_exitcode`
    returns it.
    """
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    faulthandler.enable()
    signal.alarm(TIMEOUT_S)
    os.chdir(tempfile.mkdtemp(dir="."))
    os.dup2(os.open("output", os.O_CREAT | os.O_WRONLY), 1)
    STATES[state](guarded(call))
    work()
    sys.exit()  # as every program ends


def main(state: str, first: int = 0, step: int = 1) -> None:
    for number, call in [*enumerate(CALLS)][first % step :: step]:
        if ("inside_" in state or "exit" in state or "register" in state) and call in WAITING:
            continue  # for what they interrupt; at the end, Python starts no threads any more
        name = getattr(call, "__name__", "") + f" ({number})"
        print(name, status_of(state, call) or "ok", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print(*STATES, sep="\n")
    else:
        main(sys.argv[1], *map(int, sys.argv[2:]))
