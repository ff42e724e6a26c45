"""The judge: a process that executes statements on copies of a database.

`judging.py` starts this program as `PYTHON -I judge.py LIBRARY`, with the interpreter of the
profiled program. That interpreter need not have queryprof, so the judge uses only the standard
library (and apsw, if that is the LIBRARY) and a few modules of queryprof with the same restriction.
Requests and answers are pickles on its standard streams, from and to the process that started it.

The statements may come from an untrusted trace. Each statement is executed alone, under an
authorizer that restricts it to the copy.

SQLite's online backup makes the copies. The backup opens the original read-only, takes a read lock,
and is consistent while other processes write. A copy's file is unlinked as soon as it is open, so
that nothing remains however this process ends. The copy's journal is in memory.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import re
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from types import ModuleType
from typing import Any

if __name__ == "__main__":  # import the queryprof next to this file, not an installed one
    package: Any = ModuleType("queryprof")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["queryprof"] = package

from queryprof.confined.authorizer import READ, Authorizer, refuse_select
from queryprof.confined.process import confine_process, limit_cpu_time, limit_file_size
from queryprof.planner.libraries import ApswLibrary, Sqlite3Library

PROGRESS_STEPS = 100_000
"""VM steps between two checks of the clock. The cost of these checks is too small to measure."""

INSERTED_ROWS = 200

FORMAT_VERSIONS, ROLLBACK_JOURNAL = 18, b"\x01\x01"
"""The offset of the read and write format versions in a database's header, and their values for a
database without a write-ahead log.
"""

SIGNIFICANT_DIGITS = 12
"""Results are compared by this many digits of a float, because the last digits depend on the order
of a sum.
"""

FILE_SHARE, FILE_BYTES, TIME_S = 4, 256 << 20, 10.0
"""Limits of this process. A file may have FILE_SHARE times the size of the copied database plus
FILE_BYTES. CPU time may exceed the time until the deadline by TIME_S.
"""

Values = Any  # the parameters of a statement: a tuple or a dict


class Executor:
    """Answers requests. Each public method handles one kind of request."""

    def __init__(self, library: str) -> None:
        self._library: Any = ApswLibrary() if library == "apsw" else Sqlite3Library()
        self._copies: dict[str, Any] = {}
        self._references = False
        self.authorizer = Authorizer()
        self._end_s = self._limit_s = float("inf")

    def version(self) -> str:
        """Return the version of SQLite."""
        return str(self._library.version)

    def set_deadline(self, left_s: float) -> None:
        """Interrupt statements after this many seconds."""
        self._end_s = time.monotonic() + left_s
        limit_cpu_time(left_s + TIME_S)

    def copy_database(self, address: str, name: str, directory: str) -> int:
        """Copy a database (an SQLite URI, or the name of a copy), and return the copy's size in
        bytes.

        The file's name is removed before the first page is written.
        """
        is_copy = not address.startswith("file:")
        source = self._copies[address] if is_copy else self._library.open(address)
        handle, path = tempfile.mkstemp(prefix="queryprof-copy-", dir=directory or None)
        try:
            quoted = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
            target, copy = self._library.open(quoted), self._library.open(quoted)
            os.unlink(path)
            target.execute("PRAGMA journal_mode = MEMORY").fetchall()
            self._library.copy(source, target)
            target.close()
            # A database in WAL mode would need a file next to it.
            os.pwrite(handle, ROLLBACK_JOURNAL, FORMAT_VERSIONS)
        finally:
            os.close(handle)
            if not is_copy:
                source.close()
        if name in self._copies:
            self._copies[name].close()
        self._copies[name] = self._prepare_copy(copy)
        size = self.used_bytes(name)
        limit_file_size(FILE_SHARE * size + FILE_BYTES)
        return size

    def attach(self, name: str, address: str, schema: str) -> None:
        """Attach another database (an SQLite URI) to a copy, so that statements can read it."""
        self._library.set_authorizer(self._copies[name], None)
        self._copies[name].execute(f"ATTACH ? AS {schema}", (address,)).fetchall()
        self._library.set_authorizer(self._copies[name], self.authorizer)

    def detach(self, name: str, schema: str) -> None:
        """Detach a database that `attach` attached."""
        self._library.set_authorizer(self._copies[name], None)
        self._copies[name].execute(f"DETACH {schema}").fetchall()
        self._library.set_authorizer(self._copies[name], self.authorizer)

    def rename(self, name: str, other: str) -> None:
        self._copies[other] = self._copies.pop(name)

    def create_empty(self, name: str) -> None:
        """Create an empty database in memory."""
        limit_file_size(FILE_BYTES)
        copy = self._library.open(":memory:")
        copy.execute("PRAGMA temp_store = MEMORY")
        self._copies[name] = self._prepare_copy(copy)

    def _prepare_copy(self, copy: Any) -> Any:
        copy.execute("PRAGMA journal_mode = MEMORY").fetchall()
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute(f"PRAGMA foreign_keys = {int(self._references)}")
        copy.set_progress_handler(
            lambda: time.monotonic() > min(self._end_s, self._limit_s), PROGRESS_STEPS
        )
        self._library.set_authorizer(copy, self.authorizer)
        self._library.limit_values(copy)
        return copy

    def add_dummies(self, name: str, functions: list[str], collations: list[str]) -> None:
        """Register dummies for unknown functions and collations. The dummies are only for
        planning.
        """
        for function in functions:
            self._library.add_function(self._copies[name], function)
        for collation in collations:
            self._copies[name].create_collation(
                collation, lambda left, right: (left > right) - (left < right)
            )

    def execute(self, name: str, sql: str) -> None:
        self._library.execute(self._copies[name], sql).fetchall()

    def enforce_all_references(self) -> None:
        """Enforce foreign keys in all copies made from now on."""
        self._references = True

    def switch(self, name: str, setting: str, is_on: bool) -> None:
        """Switch a connection's setting on or off: foreign_keys or automatic_index."""
        self._library.set_authorizer(self._copies[name], None)
        self._copies[name].execute(f"PRAGMA {setting} = {int(is_on)}").fetchall()
        self._library.set_authorizer(self._copies[name], self.authorizer)

    def create(self, name: str, sql: str) -> None:
        """Execute a statement of a schema. A CREATE with a SELECT is refused, because it would add
        rows.
        """
        if sql.lstrip()[:6].upper() != "CREATE":  # SQLite's ALTER contains SELECTs
            self.execute(name, sql)
            return
        self._library.set_authorizer(self._copies[name], refuse_select(self.authorizer))
        try:
            self.execute(name, sql)
        finally:
            self._library.set_authorizer(self._copies[name], self.authorizer)

    def rows(self, name: str, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._library.execute(self._copies[name], sql, values)]

    def plan(self, name: str, sql: str, values: Values = ()) -> list[str]:
        """Return the steps of the plan that SQLite chooses for these values."""
        return [row[3] for row in self.rows(name, "EXPLAIN QUERY PLAN " + sql, values)]

    def used_indexes(
        self, name: str, creates: list[str], samples: list[tuple[str, Values]], rounds: int
    ) -> list[list[int]]:
        """Create all indexes in an empty database, and return the numbers of the indexes that the
        planner uses. Repeat this for several rounds, each without the indexes that were used
        before.

        Args:
            creates: statements that create the indexes, with {} in place of the name.
        """
        left: dict[int, str] = {}
        found: list[list[int]] = []
        tried = f"queryprof_{secrets.token_hex(4)}_"  # unused in the database
        for number, create in enumerate(creates):
            try:
                self.execute(name, create.replace("{}", f"{tried}{number}"))
                left[number] = f"{tried}{number}"
            except Exception:  # noqa: S112  not allowed in an index
                continue
        for _ in range(rounds):
            plans = " ".join(
                step for sql, values in samples for step in self.plan(name, sql, values)
            )
            used = [n for n, index in left.items() if re.search(rf" {index}\b", plans)]
            if not used:
                break
            found.append(used)
            for number in used:
                self.execute(name, f"DROP INDEX {left.pop(number)}")
        for index in left.values():
            self.execute(name, f"DROP INDEX {index}")
        return found

    def columns(self, name: str, sql: str, values: Values = ()) -> list[tuple[str, str]]:
        """Return the distinct (table, column) pairs that a statement reads, as SQLite's authorizer
        reports them.
        """
        met: dict[tuple[str, str], None] = {}

        def authorize(action: int, table: str | None, column: str | None, *place: Any) -> int:
            if action == READ and table and column:
                met[table, column] = None
            return self.authorizer(action, table, column, *place)

        self._library.set_authorizer(self._copies[name], authorize)
        try:
            self.rows(name, "EXPLAIN QUERY PLAN " + sql, values)
        finally:
            self._library.set_authorizer(self._copies[name], self.authorizer)
        return list(met)

    def used_bytes(self, name: str) -> int:
        """Return the bytes of a copy's pages that are in use."""
        pragmas = "pragma_page_count, pragma_freelist_count, pragma_page_size"
        sql = f"SELECT (page_count - freelist_count) * page_size FROM {pragmas}"
        return int(self.rows(name, sql)[0][0])

    def measure(
        self,
        names: list[str],
        sql: str,
        values: Values,
        writes: bool,
        rounds: int,
        enough_ns: int,
        limit_ns: float,
        most_rows: int | None,
    ) -> dict[str, tuple[float, int | None, int | None, int, str]]:
        """Execute a statement on copies by turns, and fetch at most `most_rows` (None for all).

        Returns:
            By copy: the shortest time (ns) of all rounds, VM steps, page fetches (None if unknown),
                rows, and a hash of the unordered rows. Rounds end early after `enough_ns`. If a
                first execution takes `limit_ns`, each result is (limit_ns, None, None, 0, "").
        """
        least, facts = {}, {}
        start = time.perf_counter_ns()
        for name in names:
            self._library.refuse_several_statements(self._copies[name], sql, values)
            self._limit_s = time.monotonic() + limit_ns / 1e9
            try:
                facts[name] = self._measure_work(self._copies[name], sql, values, writes, most_rows)
            except Exception:
                if not self._limit_s < time.monotonic() < self._end_s:
                    raise
                return dict.fromkeys(names, (limit_ns, None, None, 0, ""))
            finally:
                self._limit_s = float("inf")
            least[name] = facts[name][0]
        for _ in range(rounds - 1):
            if time.perf_counter_ns() - start > enough_ns:
                break
            for name in names:
                took_ns, _rows = self._timed(self._copies[name], sql, values, writes, most_rows)
                least[name] = min(least[name], took_ns)
        return {name: (least[name], *facts[name][1:]) for name in names}

    def count_changed_rows(self, name: str, sql: str, values: Values) -> int:
        """Execute a statement, undo its changes, and return the number of changed rows."""
        _, rows = self._timed(self._copies[name], sql, values, True, None)
        return int(rows[-1][0])

    def _timed(
        self, copy: Any, sql: str, values: Values, writes: bool, most_rows: int | None
    ) -> tuple[int, list[Any]]:
        with _undo_changes(copy) if writes else nullcontext():
            start = time.perf_counter_ns()
            cursor = copy.execute(sql, values)
            rows = list(islice(cursor, most_rows))
            cursor.close()
            took_ns = time.perf_counter_ns() - start
            if writes:
                rows += copy.execute("SELECT changes()").fetchall()
            return took_ns, rows

    def _measure_work(self, copy: Any, *arguments: Any) -> Any:
        counters = self._library.counters
        if counters:
            counters.watch(copy)
        pages = counters.pages(copy) if counters else 0
        took_ns, rows = self._timed(copy, *arguments)
        pages = counters.pages(copy) - pages if counters else None
        steps = counters.steps(copy) if counters else None
        return took_ns, steps, pages, len(rows), _hash_rows(rows)

    def insert_ns(
        self, names: list[str], table: str, key: list[str], columns: list[str], rounds: int
    ) -> dict[str, float]:
        """Return the shortest time (ns) of an insert into a table, by copy; {} if the table is
        empty. The method deletes some rows and inserts them again. All names are quoted SQL; `key`
        identifies a row, and `columns` are inserted.
        """
        keys, listed = ", ".join(key), ", ".join(columns)
        rows = self.rows(
            names[0],
            f"SELECT {keys}, {listed} FROM {table}"
            f" WHERE abs(random()) % (SELECT max(1, count(*) / ?) FROM {table}) = 0 LIMIT ?",
            (INSERTED_ROWS, INSERTED_ROWS),
        )
        if not rows:
            return {}
        delete = f"DELETE FROM {table} WHERE " + " AND ".join(f"{one} = ?" for one in key)
        insert = f"INSERT INTO {table} ({listed}) VALUES ({', '.join('?' * len(columns))})"
        least = dict.fromkeys(names, float("inf"))
        for _ in range(rounds):
            for name in names:
                copy = self._copies[name]
                with _undo_changes(copy):
                    copy.executemany(delete, [row[: len(key)] for row in rows])
                    inserted = [row[len(key) :] for row in rows]
                    start = time.perf_counter_ns()
                    copy.executemany(insert, inserted)
                    least[name] = min(least[name], (time.perf_counter_ns() - start) / len(rows))
        return least


@contextmanager
def _undo_changes(copy: Any) -> Iterator[None]:
    copy.execute("SAVEPOINT queryprof")
    try:
        yield
    finally:
        with suppress(Exception):  # an interrupted write may already have ended the savepoint
            copy.execute("ROLLBACK TO queryprof")
            copy.execute("RELEASE queryprof")


def _error_in_words(error: Exception, authorizer: Authorizer) -> tuple[str, str]:
    """Return an error's type and its message on one line."""
    text = re.sub(r"\s+", " ", str(error)) or type(error).__name__
    if authorizer.refused and ("authoriz" in text or "prohibited" in text):
        text = f"refused: {authorizer.refused}"
    return type(error).__name__, text


def _hash_rows(rows: list[Any]) -> str:
    """Return a hash that is equal for equal rows in any order."""
    total = 0
    for row in rows:
        text = repr([f"{v:.{SIGNIFICANT_DIGITS}g}" if isinstance(v, float) else v for v in row])
        total += int.from_bytes(
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big"
        )
    return f"{total % 2**128:032x}"


def main() -> None:  # answer requests until the input ends
    # Ctrl-C interrupts the command, which then interrupts this process with SIGUSR1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's output must not mix with the answers
    confine_process()
    gc.disable()
    executor = Executor(sys.argv[1])
    signal.signal(signal.SIGUSR1, lambda *_: executor.set_deadline(0))
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301  of the process that started it
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = (True, getattr(executor, name)(*arguments))
        except Exception as error:
            answer = (False, _error_in_words(error, executor.authorizer))
        pickle.dump(answer, answers, protocol=4)
        answers.flush()


if __name__ == "__main__":
    main()
