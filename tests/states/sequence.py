"""A program that runs a sequence of steps: `sequence.py "install query span_in query uninstall"`.

It prints, as JSON, the number of queries made during each recording, by trace, and for each
profiled block the number of queries made and the number in its profile. The steps check their own
effects on the program.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sqlite3
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import queryprof as q

TIMEOUT_S = 60
SQL = "SELECT value FROM numbers WHERE id = ?"


class Program:
    """Each public method is a step."""

    def __init__(self) -> None:
        self._db = self._opened()
        self._cursors: list[sqlite3.Cursor] = []
        self._spans: list[q.span] = []
        self._profiles: list[tuple[q.Recording, int, int]] = []
        self._ends = 0  # of recordings
        self._generators: list[Iterator[int]] = []
        self._trace = ""
        self._traces = 0
        self._made = self._begun = 0  # all queries, and those before a block began the recording
        self._is_of_block = False
        self.queries: Counter[str] = Counter()
        self.profiles: list[tuple[int, int]] = []

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(":memory:", check_same_thread=False)
        db.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, value)")
        db.executemany("INSERT INTO numbers VALUES (?, ?)", [(i, i * i) for i in range(10)])
        return db

    # -- recording ---------------------------------------------------------------------------

    def install(self) -> None:
        was_on = q.is_installed()
        name = f"{self._traces}.qprof"
        q.install(name)
        assert q.is_installed()
        if not was_on or self._is_of_block:
            self._trace, self._traces = name, self._traces + 1
            self.queries[name] = self._made - self._begun if was_on else 0
        self._is_of_block = False

    def uninstall(self) -> None:
        self._ends += q.is_installed()
        q.uninstall()
        assert not q.is_installed()
        self._trace, self._is_of_block = "", False

    def profile(self) -> None:
        was_on = q.is_installed()
        p = q.profile(None if self._made % 2 else f"block-{len(self._profiles)}.qprof")
        p.__enter__()
        self._profiles.append((p, self._made, self._ends))
        if not was_on:
            self._trace = ""  # not the program's own until it installs one
            self._begun, self._is_of_block = self._made, True

    def end_profile(self) -> None:
        if not self._profiles:
            return
        p, before, ends = self._profiles.pop()
        is_whole = ends == self._ends  # otherwise the program has ended the recording in the block
        p.__exit__(None, None, None)
        found = sum(
            a.count for a in p.profile.aggregates if a.statement == SQL and a.operation == "execute"
        )
        if is_whole:
            self.profiles.append((self._made - before, found))
        if not q.is_installed():
            self._ends += 1
            self._trace, self._is_of_block = "", False

    # -- work --------------------------------------------------------------------------------

    def _count(self) -> None:
        self._made += 1
        if q.is_installed() and self._trace:
            self.queries[self._trace] += 1

    def query(self) -> None:
        assert self._db.execute(SQL, (3,)).fetchall() == [(9,)]
        self._count()

    def query_in_a_thread(self) -> None:
        thread = threading.Thread(target=self.query)
        thread.start()
        thread.join()

    def open_cursor(self) -> None:
        self._cursors.append(self._db.execute(SQL, (4,)))
        self._count()

    def read_cursor(self) -> None:
        if self._cursors:
            assert self._cursors.pop().fetchone() == (16,)

    def error(self) -> None:
        with suppress(sqlite3.OperationalError):
            self._db.execute("SELECT nothing FROM nowhere")
            raise AssertionError

    def reopen(self) -> None:
        self._cursors.clear()
        self._db.close()
        self._db = self._opened()

    def collect(self) -> None:
        gc.collect()

    # -- spans -------------------------------------------------------------------------------

    def span_in(self) -> None:
        self._spans.append(q.span(f"span {len(self._spans)}").__enter__())

    def span_out(self) -> None:
        if self._spans:
            self._spans.pop().__exit__(None, None, None)

    def first_span_out(self) -> None:
        if self._spans:
            self._spans.pop(0).__exit__(None, None, None)

    def span_figures(self) -> None:
        for span in self._spans:
            span.figures()
            span.set_status(200)

    def generator_in(self) -> None:
        def numbers() -> Iterator[int]:
            with q.span("generator"):
                self.query()
                yield 1
                self.query()

        self._generators.append(numbers())
        assert next(self._generators[-1]) == 1

    def generator_out(self) -> None:
        if self._generators:
            self._generators.pop().close()  # type: ignore[attr-defined]

    # -- processes and others ----------------------------------------------------------------

    def fork(self) -> None:
        with warnings.catch_warnings():
            # The kernel counts a thread for some microseconds after it was joined.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            assert self._db.execute(SQL, (5,)).fetchall() == [(25,)]
            with q.span("child"):
                q.uninstall()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    def handle_a_signal(self) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: self.query())
        os.kill(os.getpid(), signal.SIGUSR1)

    def loop_lag(self) -> None:
        q.loop_lag()

    def instrument(self) -> None:
        q.instrument("some_driver")


STEPS = [name for name in vars(Program) if not name.startswith("_")]


def main(steps: list[str]) -> None:
    faulthandler.enable()
    signal.alarm(TIMEOUT_S)  # a hang ends it; a thread that watches would make forks warn
    program = Program()
    for step in steps:
        getattr(program, step)()
    while program._profiles:
        program.end_profile()
    q.uninstall()
    print(json.dumps({"queries": program.queries, "profiles": program.profiles}))


if __name__ == "__main__":
    main(sys.argv[1].split())
