"""Start the judge (queryprof.planner.judge), a process that executes statements on copies of a
database, and send requests to it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from queryprof.confined.folder import temporary_folder
from queryprof.errors import ProofError

JUDGE = Path(__file__).with_name("judge.py")
BEFORE, AFTER, EMPTY, WHOLE = "before", "after", "empty", "whole"
"""The names of the copies: BEFORE is the unchanged database, AFTER has the changes to try, and
EMPTY has only the schema. If BEFORE and AFTER are samples, WHOLE has all rows.
"""

COPY_NAMES = frozenset({BEFORE, AFTER, EMPTY, WHOLE})

UNLIMITED_NS = float("inf")

GRACE_S = 2.0
"""How long to wait for the judge after its deadline, before the process is killed."""

MAX_WAIT_S = 1e6
INTERRUPTED = frozenset({"InterruptError"})

Switch = Literal["foreign_keys", "automatic_index"]


class _PlainUnpickler(pickle.Unpickler):
    """Unpickle only numbers, texts, bytes and containers, because the judge executes untrusted
    statements.
    """

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not a plain value")


class StatementError(Exception):
    """SQLite rejected a statement. The message comes from SQLite."""


class OutOfTime(Exception):  # noqa: N818  a limit, not an error
    """The deadline of `set_deadline` has passed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one statement with one set of parameters on one copy.

    Attributes:
        ns: the shortest of several executions, including the fetches; or the limit, if the
            statement took longer.
        vm_steps, page_fetches: per execution; None if unknown.
        digest: a hash of the rows that does not depend on their order.
    """

    ns: float
    vm_steps: int | None
    page_fetches: int | None
    rows: int
    digest: str


def is_same_work(some: Sequence[Measurement], others: Sequence[Measurement]) -> bool:
    """Return whether two series of measurements took the same VM steps. VM steps have no noise, and
    a write that must maintain another index takes more.
    """
    steps, before = ([one.vm_steps for one in its] for its in (some, others))
    return steps == before and bool(steps) and None not in steps


class Judge:
    """Copies of a database, and a process that executes statements on them.

    When the time limit is reached, running statements are interrupted. If SQLite does not react,
    because a single step takes too long, the process is killed. The next `set_deadline` starts a
    new process, which has only a fresh copy of the database.
    """

    def __init__(self, interpreter: str = sys.executable, library: str = "sqlite3") -> None:
        """Start the process. Raises ProofError if the interpreter cannot be started or lacks the
        library.
        """
        self.interpreter, self.library = interpreter, library
        self.has_references = False
        self._folder = ExitStack()
        self._directory = ""
        self._taken: tuple[str, str] | None = None
        self.dummy_functions: set[str] = set()
        self._end_s = float("inf")
        self._is_ended = False
        self._start()
        try:
            self.version = str(self._ask("version"))
        except ProofError:
            self.close()
            raise

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(
                [self.interpreter, "-I", str(JUDGE), self.library],
                env={**os.environ, "QUERYPROF": ""},  # do not record the judge
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ProofError(f"{self.interpreter}: cannot be started: {error.strerror}") from error
        self._answers = select.poll()
        self._answers.register(self._process.stdout or -1, select.POLLIN)
        self._is_ended = False

    def close(self) -> None:
        """End the process, and remove its copies."""
        self._end()
        self._folder.close()

    def _end(self) -> None:
        self._is_ended = True
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, name: str, *arguments: object) -> Any:
        assert self._process.stdin
        if self._is_ended:
            raise OutOfTime
        is_sent = False
        try:
            # Ctrl-C must not separate a request from its answer, because the next request would
            # then read the wrong answer.
            try:
                with _without_interrupts():  # Ctrl-C is raised at the end of the block
                    pickle.dump((name, arguments), self._process.stdin, protocol=4)
                    self._process.stdin.flush()
                    is_sent = True
                self._wait(self._end_s)
            except KeyboardInterrupt:
                if is_sent:
                    self._process.send_signal(signal.SIGUSR1)
                    with contextlib.suppress(OutOfTime):
                        self._wait(time.monotonic())
                        self._answer()
                raise
            is_good, answer = self._answer()
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            errors = self._process.communicate()[1].decode(errors="replace").strip().splitlines()
            reason = errors[-1] if errors else f"it ended with status {self._process.returncode}"
            raise ProofError(
                f"{self.interpreter}: the measuring process failed: {reason}"
            ) from error
        if is_good:
            return answer
        kind, message = answer
        if message == "interrupted" or kind in INTERRUPTED:
            raise OutOfTime
        raise StatementError(message)

    def _wait(self, end_s: float) -> None:
        """Wait for an answer. If the judge does not answer within GRACE_S after the deadline, kill
        the process and raise OutOfTime.
        """
        left_s = end_s + GRACE_S - time.monotonic()
        if not self._answers.poll(max(0, left_s) * 1000 if left_s < MAX_WAIT_S else None):
            self._end()
            raise OutOfTime

    def _answer(self) -> tuple[bool, Any]:
        assert self._process.stdout
        with _without_interrupts():
            return _PlainUnpickler(self._process.stdout).load()  # type: ignore[no-any-return]

    def set_deadline(self, left_s: float) -> None:
        """See the judge's `set_deadline`."""
        self._end_s = float("inf")
        if self._is_ended:
            self._start()
            if self.has_references:
                self.enforce_all_references()
            if self._taken:  # BEFORE may have been a sample of the copy
                for name in {self._taken[1], BEFORE}:
                    self._ask("copy_database", self._taken[0], name, self._directory)
        self._ask("set_deadline", left_s)
        self._end_s = time.monotonic() + left_s

    def copy_database(self, address: str, name: str) -> int:
        """See the judge's `copy_database`."""
        if not self._directory:
            self._directory = self._folder.enter_context(temporary_folder())
        size = int(self._ask("copy_database", address, name, self._directory))
        if address not in COPY_NAMES:
            self._taken = (address, name)
        return size

    def attach(self, name: str, address: str, schema: str) -> None:
        self._ask("attach", name, address, schema)

    def detach(self, name: str, schema: str) -> None:
        self._ask("detach", name, schema)

    def rename(self, name: str, other: str) -> None:
        """Rename a copy, and replace the copy that has the other name."""
        self._ask("rename", name, other)
        if self._taken and self._taken[1] == name:
            self._taken = (self._taken[0], other)

    def create_empty(self, name: str) -> None:
        self._ask("create_empty", name)

    def add_dummies(self, name: str, functions: Sequence[str], collations: Sequence[str]) -> None:
        self.dummy_functions.update(one.lower() for one in functions)
        self._ask("add_dummies", name, list(functions), list(collations))

    def execute(self, name: str, sql: str) -> None:
        self._ask("execute", name, sql)

    def enforce_all_references(self) -> None:
        self.has_references = True
        self._ask("enforce_all_references")

    def switch(self, name: str, setting: Switch, is_on: bool) -> None:
        """Switch a setting of an empty copy on or off."""
        self._ask("switch", name, setting, is_on)

    def create(self, name: str, sql: str) -> None:
        """See the judge's `create`. Raises StatementError."""
        self._ask("create", name, sql)

    def rows(self, name: str, sql: str, values: object = ()) -> list[tuple[Any, ...]]:
        return self._ask("rows", name, sql, values)  # type: ignore[no-any-return]

    def plan(self, name: str, sql: str, values: object = ()) -> tuple[str, ...]:
        return tuple(self._ask("plan", name, sql, values))

    def columns(self, name: str, sql: str, values: object = ()) -> list[tuple[str, str]]:
        """See the judge's `columns`. Raises StatementError."""
        return [(table, column) for table, column in self._ask("columns", name, sql, values)]

    def used_indexes(
        self, name: str, creates: Sequence[str], samples: Sequence[tuple[str, object]], rounds: int
    ) -> list[list[int]]:
        """See the judge's `used_indexes`. StatementError: a statement cannot be planned."""
        return list(self._ask("used_indexes", name, list(creates), list(samples), rounds))

    def used_bytes(self, name: str) -> int:
        return int(self._ask("used_bytes", name))

    def measure(
        self,
        names: Sequence[str],
        sql: str,
        values: object,
        writes: bool,
        rounds: int,
        enough_ns: int,
        limit_ns: float = UNLIMITED_NS,
        most_rows: int | None = None,
    ) -> Mapping[str, Measurement]:
        """See the judge's `measure`. Raises StatementError, OutOfTime."""
        found = self._ask(
            "measure", list(names), sql, values, writes, rounds, enough_ns, limit_ns, most_rows
        )
        return {name: Measurement(*one) for name, one in found.items()}

    def count_changed_rows(self, name: str, sql: str, values: object) -> int:
        """See the judge's `count_changed_rows`. Raises StatementError, OutOfTime."""
        return int(self._ask("count_changed_rows", name, sql, values))

    def insert_ns(
        self,
        names: Sequence[str],
        table: str,
        key: Sequence[str],
        columns: Sequence[str],
        rounds: int,
    ) -> Mapping[str, float]:
        return self._ask(  # type: ignore[no-any-return]
            "insert_ns", list(names), table, list(key), list(columns), rounds
        )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_judge(versions: Sequence[str], interpreter: str = sys.executable) -> Judge:
    """Return a judge with the program's SQLite version (from sqlite3 or apsw), or else with the
    SQLite of the interpreter's sqlite3.

    Args:
        versions: the SQLite versions of the recorded processes.
        interpreter: a path to Python. It never comes from a trace, because anyone may have written
            the trace.

    Raises:
        ProofError: the interpreter cannot be started, or is not a Python.
    """
    judge = Judge(interpreter)
    if judge.version in versions:
        return judge
    try:
        other = Judge(interpreter, "apsw")
    except ProofError:
        return judge  # the interpreter lacks apsw
    found, left = (other, judge) if other.version in versions else (judge, other)
    left.close()
    return found
