"""Forward signals, so that the command receives each signal as often as without queryprof."""

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
WRITE_SIGNALS = {signal.SIGPIPE, signal.SIGXFSZ}
"""Signals that a write can cause here; Python ignores them."""

FORWARDED = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
EARLY = FORWARDED - FAULTS - WRITE_SIGNALS
"""Signals that are kept until the command has started."""

ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""Signals that users send to end a command. After the command has ended, they change neither the
exit status nor the trace.
"""

STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
MAX_WAIT_S = 0.5
"""Maximum time to wait for a signal before checking whether the command has ended."""

STOPPED, LOOK_S = ("T", "t"), 0.05
"""States of a stopped process in proc(5), and seconds between two checks by the witness."""


class SignalForwarding:
    """A context that keeps signals until the command has started, and then forwards them.

    Until the command ends, no interrupt ends this process: a second Ctrl-C is meant for the
    command.
    """

    def __enter__(self) -> Self:
        self._early: list[int] = []
        handlers = {int(number): signal.getsignal(number) for number in EARLY}
        self._previous = {
            number: one for number, one in handlers.items() if one is not None
        }  # None: a handler of C code
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            self._witness = SignalWitness()
            # A child inherits ignored signals. It does not inherit handlers.
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
        """Wait for a command to end. Stop and continue with the command, and forward signals.

        This method uses sigtimedwait, because a handler does not receive the sender's pid.

        Returns:
            The return code of subprocess.
        """
        waited = FORWARDED | {signal.SIGCHLD}
        before = signal.signal(signal.SIGCHLD, _ignore_signal)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        try:
            for number in self._early:
                child.send_signal(number)
            while (status := child.poll()) is None:
                # Another thread of this process may have taken the SIGCHLD.
                sent = signal.sigtimedwait(waited, MAX_WAIT_S)
                if sent is None:
                    continue
                if sent.si_signo == signal.SIGCHLD:
                    self._stop_with(child)
                elif not self._is_own_signal(sent) and not self._was_sent_to_child(
                    child, sent.si_signo
                ):
                    child.send_signal(sent.si_signo)
            return status
        finally:
            while signal.sigtimedwait(waited, 0):
                pass  # too late for the command
            self._restore(self._previous.keys() - ENDS)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            signal.signal(signal.SIGCHLD, before)

    def _stop_with(self, child: subprocess.Popen[bytes]) -> None:
        """Stop this process if the command was stopped, so that the waiting shell notices.

        This process continues at SIGCONT, or when the command continues or ends.
        """
        number = _stopped_by(child.pid)
        if not number:
            return
        self._witness.watch(child.pid)
        if number in STOPS:
            before = signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # this process stops here, and later continues
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
            signal.signal(number, before)
        else:
            os.kill(os.getpid(), number)
        self._witness.watch(0)

    def _is_own_signal(self, sent: signal.struct_siginfo) -> bool:
        """Return whether a write of this process, or the witness, caused a signal."""
        is_of_write = sent.si_signo in WRITE_SIGNALS and sent.si_pid == os.getpid()
        return is_of_write or sent.si_pid == self._witness.pid

    def _was_sent_to_child(self, child: subprocess.Popen[bytes], number: int) -> bool:
        """Return whether the command has also received a signal, for example from the terminal.

        The terminal sends signals to all processes of a group.
        """
        try:
            return self._witness.has(number) and os.getpgid(child.pid) == os.getpgrp()
        except ProcessLookupError:
            return True


class SignalWitness:
    """A process of this group that records signals without handling them.

    A signal that the witness has received was sent to the whole group. The witness is younger than
    this process, and the kernel signals the youngest process of a group first. A pending stop and a
    pending SIGCONT cancel each other (signal(7) of POSIX).

    While this process is stopped, the witness watches the command.
    """

    def __init__(self) -> None:
        question, self._question = os.pipe()
        self._answer, answer = os.pipe()
        self._known: list[int] = []
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(self._question)
                _report_signals(question, answer)
            finally:
                os._exit(0)
        os.close(question)
        os.close(answer)

    def watch(self, pid: int) -> None:
        """Wake this process when a stopped process continues; 0 ends the watch."""
        with suppress(OSError):  # the witness was killed
            os.write(self._question, b"%d\n" % pid)

    def has(self, number: int) -> bool:
        """Return whether the witness has received a signal. Each signal counts once."""
        try:
            was_stopped = _stopped_by(self.pid)
            if was_stopped:  # by a stop of the group
                os.kill(self.pid, signal.SIGCONT)
            os.write(self._question, b"?\n")
            self._known += os.read(self._answer, os.read(self._answer, 1)[0])
        except (OSError, IndexError):
            return False  # the witness was killed
        if was_stopped and signal.SIGCONT in self._known:
            self._known.remove(signal.SIGCONT)
        if number not in self._known:
            return number in STOPS and signal.SIGCONT in self._known  # SIGCONT has cancelled it
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
            os.kill(self.pid, signal.SIGKILL)  # the witness may be stopped
        with suppress(ChildProcessError):  # for processes that ignore their children
            os.waitpid(self.pid, 0)


def _report_signals(question: int, answer: int) -> None:
    """For each line "?" in `question`, write the received signals: their count, then the signals.

    Any other line is the pid of a process to watch. Wakes the parent when this process is no longer
    stopped. Returns when the parent has ended.
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
    """Return whether a process is stopped, by its state in proc(5); True without proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] in STOPPED
    except OSError:
        return not os.path.exists("/proc/self/stat")


def _stopped_by(pid: int) -> int:
    """Return the signal that has stopped a child since the last call.

    Returns 0 without a new stop, or if the child has ended.
    """
    try:
        status = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return status.si_status if status else 0


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. Unlike SIG_IGN, the command does not inherit this handler."""
