"""QUERYPROF=standby: a program that can be attached to later.

Such a program only gets a signal handler, and a lock around forks. The handler starts a thread and
returns, because the program may hold locks at that moment. The thread imports code, begins or ends
the recording, and exits. At other times there is no such thread.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import sys

from queryprof.recorder.fork_guard import fork_guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.recorder.messages import Begin

SIGNAL: int = getattr(_signal, "SIGURG", 0)
"""The signal that makes a program look for a command. Programs without a handler ignore it
(signal(7)), so the signal is harmless if the process has replaced its program by exec.
"""

NO_DESCRIPTOR = (23, 24)
"""ENFILE and EMFILE (errno(3)): the program may have used all its descriptors."""

STANDBY = "standby"
"""The value of QUERYPROF for standby."""


def stand_by(begin: Begin) -> None:
    """Look for a command at each signal from now on.

    Raises:
        OSError, ValueError: the signal does not exist here.
        RuntimeError: the program uses the signal.
    """
    if _signal.getsignal(SIGNAL) is not _signal.SIG_DFL:
        raise RuntimeError(f"signal {SIGNAL} already has a handler")
    fork_guard.watch()

    def look(_number: int, _frame: object) -> None:
        look_for_command(begin)

    _signal.signal(SIGNAL, look)


def look_for_command(begin: Begin) -> None:
    """Look for a command in a new thread."""
    fork_guard.expect_thread()
    try:
        _thread.start_new_thread(_answer_in_thread, (begin,))
    except Exception:  # no thread is available, or an audit hook refuses it
        fork_guard.thread_started()  # the command reports that nothing answers


def _answer_in_thread(begin: Begin) -> None:
    try:
        with fork_guard:
            from queryprof.recorder.answer import answer_command

            answer_command(begin)
    except Exception as error:  # out of memory, for example: the program continues
        if getattr(error, "errno", None) in NO_DESCRIPTOR:
            return  # the command reports this
        try:
            sys.stderr.write(f"queryprof: attach: {type(error).__name__}: {error}\n")
        except Exception:
            pass
