"""QUERYPROF=standby: a program that can be attached to. Nothing is in place but a signal's handler.

The handler starts a thread and returns: the program may be in the midst of anything, with locks
held, and nothing of it may wait for us.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread

from queryprof.attachment.messages import SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.autoload import Beginning


def stand_by(beginning: Beginning) -> None:
    """Lets the signal have a command looked for, from now on.

    Args:
        beginning: what was known when Python started.

    Raises:
        OSError, ValueError: there is no such signal here.
        RuntimeError: the program uses it.
    """
    before = _signal.getsignal(SIGNAL)
    if before is not _signal.SIG_DFL:
        raise RuntimeError(f"signal {SIGNAL} has a handler")

    def look(_number: int, _frame: object) -> None:
        try:
            _thread.start_new_thread(_answer, (beginning,))
        except RuntimeError:
            pass  # no thread can be had; the command says that nothing answers

    _signal.signal(SIGNAL, look)


def _answer(beginning: Beginning) -> None:
    from queryprof.attachment.answer import answer

    answer(beginning)
