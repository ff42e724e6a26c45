"""Signals to this process are meant for its command: they are sent on, each as often as without
queryprof.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Set as AbstractSet
from contextlib import suppress
from select import select
from types import FrameType
from typing import Self

FAULTS = {
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
}
OF_WRITES = {signal.SIGPIPE, signal.SIGXFSZ}
"""What a write can cause here; Python ignores them."""

FORWARDED = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
EARLY = FORWARDED - FAULTS - OF_WRITES
"""Signals that are kept until there is a command."""

ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""What comes after the command's end leaves its status as it is, and the trace is made."""

STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
STOPPED, LOOK_S = ("T", "t"), 0.05
"""States of a stopped process, and how often the witness looks at it."""


class Forwarding:
    """A context in which signals wait for a command and then are its own; until its end no
    interrupt ends this process: a second Ctrl-C is meant for the command.
    """

    def __enter__(self) -> Self:
        self._early: list[int] = []
        handlers = {int(number): signal.getsignal(number) for number in EARLY}
        self._previous = {
            number: one for number, one in handlers.items() if one is not None
        }  # None: C's
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            self._witness = Witness()
            # What is ignored is inherited. A handler is not: the default would take its place.
            for number, handler in self._previous.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, self._keep)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._restore(self._previous.keys())
        self._witness.end()

    def _keep(self, number: int, _: FrameType | None) -> None:
        self._early.append(number)

    def _restore(self, numbers: AbstractSet[int]) -> None:
        for number in numbers:
            signal.signal(number, self._previous[number])

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Waits for a command to end, stops and goes on with it, and sends signals on meanwhile,
        each as it is taken: who has sent it is known in no handler.

        Returns:
            the return code of subprocess.
        """
        waited = FORWARDED | {signal.SIGCHLD}
        before = signal.signal(signal.SIGCHLD, _ignore)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        try:
            for number in self._early:
                child.send_signal(number)
            while (status := child.poll()) is None:
                sent = signal.sigwaitinfo(waited)
                if sent.si_signo == signal.SIGCHLD:
                    self._stop_with(child)
                elif not self._is_own(sent) and not self._has_it(child, sent.si_signo):
                    child.send_signal(sent.si_signo)
            return status
        finally:
            while signal.sigtimedwait(waited, 0):
                pass  # too late for the command
            self._restore(self._previous.keys() - ENDS)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            signal.signal(signal.SIGCHLD, before)

    def _stop_with(self, child: subprocess.Popen[bytes]) -> None:
        """Stops this process if the command was stopped: the shell that waits for this one has to
        see it. It goes on by SIGCONT, or when the command does or ends.
        """
        number = _stopped_by(child.pid)
        if not number:
            return
        self._witness.watch(child.pid)
        if number in STOPS:
            before = signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # it stops here, and goes on
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
            signal.signal(number, before)
        else:
            os.kill(os.getpid(), number)
        self._witness.watch(0)

    def _is_own(self, sent: signal.struct_siginfo) -> bool:
        """Whether a write of this process has caused a signal, or the witness, which wakes it."""
        is_of_write = sent.si_signo in OF_WRITES and sent.si_pid == os.getpid()
        return is_of_write or sent.si_pid == self._witness.pid

    def _has_it(self, child: subprocess.Popen[bytes], number: int) -> bool:
        """Whether a signal was sent to the command as well: as by the terminal, to all of
        a group.
        """
        try:
            return self._witness.has(number) and os.getpgid(child.pid) == os.getpgrp()
        except ProcessLookupError:
            return True


class Witness:
    """A process of this group that takes no signals, but notes them: what it has, too, was sent to
    the whole group. It is younger than this one, and the kernel signals the youngest of a group
    first. A stop and SIGCONT make each other void while they are pending (signal(7) of POSIX).

    While this process is stopped, it looks at the command in its place.
    """

    def __init__(self) -> None:
        question, self._question = os.pipe()
        self._answer, answer = os.pipe()
        self._known: list[int] = []
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(self._question)
                _witness(question, answer)
            finally:
                os._exit(0)
        os.close(question)
        os.close(answer)

    def watch(self, pid: int) -> None:
        """Has this process woken when a stopped one, which it waits for, is stopped no more; 0: no
        longer.
        """
        with suppress(OSError):  # it was killed
            os.write(self._question, b"%d\n" % pid)

    def has(self, number: int) -> bool:
        """Whether it has a signal; each is counted once."""
        try:
            was_stopped = _stopped_by(self.pid)
            if was_stopped:  # by a stop of the group
                os.kill(self.pid, signal.SIGCONT)
            os.write(self._question, b"?\n")
            self._known += os.read(self._answer, os.read(self._answer, 1)[0])
        except (OSError, IndexError):
            return False  # it was killed
        if was_stopped and signal.SIGCONT in self._known:
            self._known.remove(signal.SIGCONT)
        if number not in self._known:
            return number in STOPS and signal.SIGCONT in self._known  # which has made it void
        place = self._known.index(number)
        void = STOPS if number == signal.SIGCONT else {signal.SIGCONT} if number in STOPS else set()
        self._known = [one for one in self._known[:place] if one not in void] + self._known[
            place + 1 :
        ]
        return True

    def end(self) -> None:
        os.close(self._question)
        os.close(self._answer)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # it may be stopped
        with suppress(ChildProcessError):  # where children are ignored
            os.waitpid(self.pid, 0)


def _witness(question: int, answer: int) -> None:
    """Writes which signals have come, how many first, at each question; wakes its parent when what
    that waits for is stopped no more. Returns when the parent has ended.
    """
    watched, parent = 0, os.getppid()
    while True:
        if watched and not select([question], [], [], LOOK_S)[0]:
            if _is_stopped(parent) and not _is_stopped(watched):
                os.kill(parent, signal.SIGCONT)
            continue
        lines = os.read(question, 1024).split()
        if not lines:
            return
        for line in lines:
            if line == b"?":
                numbers = []
                while sent := signal.sigtimedwait(FORWARDED, 0):
                    numbers.append(sent.si_signo)
                os.write(answer, bytes([len(numbers), *numbers]))
            else:
                watched = int(line)


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by its state in proc(5); where there is none, it is not known:
    True.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] in STOPPED
    except OSError:
        return not os.path.exists("/proc/self/stat")


def _stopped_by(pid: int) -> int:
    """The signal that has stopped a child since the last call; 0: none, or it has ended."""
    try:
        status = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return status.si_status if status else 0


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Does nothing. SIG_IGN would be inherited by the command; a handler is not."""
