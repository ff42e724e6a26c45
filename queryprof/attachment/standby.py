"""QUERYPROF=standby: a program that can be attached to. Nothing is in place but a signal's handler,
and a lock around forks.

The handler starts a thread and returns: the program may be in the midst of anything, with locks
held, and nothing of it may wait for us. The thread imports, begins or ends the recording, and is
gone; between the two there is none.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import sys

from queryprof.attachment.forks import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Begin = Callable[[str, object], bool]
    """Begins to record for a runner (`Runner.variable`) and an owner; whether it was off before."""

SIGNAL: int = getattr(_signal, "SIGURG", 0)
"""What has a program look for a command: one that is ignored where it has no handler (signal(7)),
so that it harms no program that becomes another one by exec at that moment."""

NO_DESCRIPTOR = (23, 24)
"""ENFILE and EMFILE (errno(3)): a program may have used all that it can have."""

STANDBY = "standby"
"""The value of QUERYPROF."""


def stand_by(begin: Begin) -> None:
    """Lets the signal have a command looked for, from now on.

    Raises:
        OSError, ValueError: there is no such signal here.
        RuntimeError: the program uses it.
    """
    if _signal.getsignal(SIGNAL) is not _signal.SIG_DFL:
        raise RuntimeError(f"signal {SIGNAL} has a handler")
    forks.watch()

    def look(_number: int, _frame: object) -> None:
        look_for_command(begin)

    _signal.signal(SIGNAL, look)


def look_for_command(begin: Begin) -> None:
    """Looks for a command in a thread of its own."""
    forks.expect()
    try:
        _thread.start_new_thread(_answer, (begin,))
    except Exception:  # no thread can be had, or an audit hook refuses it
        forks.come()  # the command says that nothing answers


def _answer(begin: Begin) -> None:
    try:
        with forks:
            from queryprof.attachment.answer import answer

            answer(begin)
    except Exception as error:  # for want of memory, say: the program goes on
        if getattr(error, "errno", None) in NO_DESCRIPTOR:
            return  # the command says so
        try:
            sys.stderr.write(f"queryprof: attach: {type(error).__name__}: {error}\n")
        except Exception:
            pass
