"""The player: a separate process that executes a workload on a copy of a database.

queryprof.replay.replaying starts it with the path of a `PlayOrder` in JSON. Each statement is
executed alone, under an authorizer that confines it to the copy, because a workload may be
untrusted.

The player reproduces transactions. If a connection was in a transaction after an execution but not
before, and the statement is not a BEGIN, the driver began the transaction. The player then also
executes a BEGIN.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from itertools import count, islice
from pathlib import Path

import queryprof.recorder.api
from queryprof.confined.authorizer import (
    LIMIT_LENGTH,
    MAX_VALUE_BYTES,
    SETTINGS,
    Authorizer,
)
from queryprof.confined.handle import SqliteLibrary
from queryprof.confined.process import confine_process, limit_cpu_time, limit_file_size
from queryprof.errors import QueryprofError
from queryprof.replay.workload import INSIDE, OUTSIDE, Execution, read_workload
from queryprof.sql.clauses import verb_of

LOCK_TIMEOUT_S = 30.0
BEGINS = frozenset({"BEGIN", "SAVEPOINT"})
TRANSACTION_VERBS = BEGINS | {"COMMIT", "END", "ROLLBACK", "RELEASE"}
FAILS_HERE = "fails here, but not when it was recorded"
OVERTIME = "took much longer than when it was recorded"
"""The reason for skipping later executions of a statement after one was interrupted."""

PATIENCE_S, PATIENCE_SHARE, MAX_PATIENCE_S = 60.0, 20.0, 3600.0
"""An execution is interrupted after PATIENCE_S plus PATIENCE_SHARE times its recorded duration. The
second part is limited to MAX_PATIENCE_S, because an untrusted workload may contain any duration.
"""

GRACE_S = 5.0
"""SQLite notices an interrupt only between two VM steps. If a step goes on for longer than this,
the process ends itself.
"""

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class PlayOrder:
    """The settings of a player: the workload, the database, and the path of the result.

    Attributes:
        recorded_trace: the trace next to the workload.
        recorded_database: the path of the database in the workload.
        database: the copy.
        pragmas: (name, value) pairs to set on each connection.
        workers: the number of threads, each with its own connections. A single worker keeps the
            recorded order.
        seconds: play repeatedly for this time; 0 to play once.
        output_trace: where to keep a trace of the replay; "" for none.
        result: where to write a `ReplayResult` as JSON.
        time_s: limit of the process's CPU time.
        file_bytes: size limit of each file.
        share: reduce the copy to the first 1/share of the rows (queryprof.replay.growing).
        whole: URI of the original database with all rows.
    """

    recorded_trace: str
    recorded_database: str
    database: str
    result: str
    pragmas: tuple[tuple[str, str], ...] = ()
    workers: int = 1
    seconds: float = 0.0
    output_trace: str = ""
    time_s: float = 0.0
    file_bytes: int = 0
    share: int = 1
    whole: str = ""


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        executions: all executions that were played. statements: executions except statements that
            begin or end a transaction.
        database_s: time in the driver, added up over all threads.
        began_unix_s, ended_unix_s: start and end of the replay.
        left_out: number of skipped executions, by reason.
        digests: a hash of all result rows, in order, for each statement that returned rows.
    """

    executions: int = 0
    statements: int = 0
    database_s: float = 0.0
    began_unix_s: float = float("inf")
    ended_unix_s: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """Time from the first start to the last end."""
        return max(self.ended_unix_s - self.began_unix_s, 1e-9)

    def add(self, other: ReplayResult) -> None:
        self.began_unix_s = min(self.began_unix_s, other.began_unix_s)
        self.ended_unix_s = max(self.ended_unix_s, other.ended_unix_s)
        self.executions += other.executions
        self.statements += other.statements
        self.database_s += other.database_s
        self.left_out += other.left_out
        self.digests |= other.digests


class Player:
    """Plays executions in one thread. Each recorded connection gets a connection of this player."""

    def __init__(self, order: PlayOrder) -> None:
        self._order = order
        self._authorizer = Authorizer(SETTINGS - {name for name, _ in order.pragmas})
        self._connections: dict[object, sqlite3.Connection] = {}
        self._authorizers: list[object] = []
        self._library = _sqlite_library_or_none()  # before recording starts
        self._hashes: dict[str, hashlib.blake2b] = {}
        self._runs: tuple[sqlite3.Connection, Execution, float] | None = None
        self._interrupted: set[str | None] = set()
        self.played = ReplayResult()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self.played.digests = {text: one.hexdigest() for text, one in self._hashes.items()}

    def begin(self, identity: object) -> None:
        """Begin a transaction. Closing the player rolls it back."""
        self._open_connection(identity).execute("BEGIN")

    def close_one(self, identity: object) -> None:
        connection = self._connections.pop(identity, None)
        if connection:
            connection.close()

    def play(self, one: Execution, keeps_rows: bool) -> None:
        """Play one execution. If it cannot be played, skip and count it."""
        reason = self._reason_not_playable(one)
        if reason:
            self.played.left_out[reason] += 1
            return
        if one.operation == "close":
            self.close_one(one.identity)
            return
        connection = self._connections.get(one.identity) or self._open_connection(one.identity)
        start_ns = time.perf_counter_ns()
        self._authorizer.refused = ""
        self._runs = connection, one, start_ns / 1e9
        try:
            rows = _execute(connection, one)
        except (sqlite3.Error, ValueError, OverflowError, TypeError, MemoryError) as error:
            reason = f"{FAILS_HERE}: {error}"
            if self._authorizer.refused:
                reason = f"is refused in a replay: {self._authorizer.refused}"
            self.played.left_out[reason] += 1
            return
        finally:
            self._runs = None
            self.played.database_s += (time.perf_counter_ns() - start_ns) / 1e9
        self.played.executions += 1
        verb = verb_of(one.text) if one.text else "COMMIT"
        self.played.statements += verb not in TRANSACTION_VERBS
        if rows and keeps_rows and one.text:
            found = self._hashes.setdefault(one.text, hashlib.blake2b(digest_size=16))
            found.update(repr(rows).encode("utf-8", "surrogatepass"))

    def _reason_not_playable(self, one: Execution) -> str:
        if one.failed:
            return "failed when it was recorded"
        if not one.is_known:
            return "has values that were not recorded"
        return OVERTIME if one.text in self._interrupted else ""

    def _open_connection(self, identity: object) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._order.database,
            timeout=LOCK_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        for name, value in self._order.pragmas:
            connection.execute(f"PRAGMA {name} = {value}").fetchall()
        self.confine(connection)
        self._connections[identity] = connection
        return connection

    def confine(self, connection: sqlite3.Connection) -> None:
        """Restrict a connection to its own database, because the schema may be untrusted."""
        connection.setlimit(LIMIT_LENGTH, MAX_VALUE_BYTES)
        self._authorize(connection)

    def _authorize(self, connection: sqlite3.Connection) -> None:
        if self._library:
            kept = self._library.set_authorizer(connection, self._authorizer)
            self._authorizers.append(kept)
        else:  # the recording then has no counters
            connection.set_authorizer(self._authorizer)

    def interrupt(self) -> None:
        """Interrupt an execution that takes much longer than recorded. If it still goes on after
        GRACE_S, end the process.
        """
        if not (runs := self._runs):
            return
        connection, one, start_s = runs
        most_s = PATIENCE_S + min(PATIENCE_SHARE * max(0, one.duration_ns) / 1e9, MAX_PATIENCE_S)
        took_s = time.perf_counter() - start_s
        if took_s > most_s + GRACE_S:
            text = " ".join((one.text or one.operation).split())[:80]
            os.write(
                2, f"a statement still runs after {took_s:.0f} s: {text}\n".encode(errors="replace")
            )
            os._exit(1)
        if took_s > most_s:
            self._interrupted.add(one.text)
            with suppress(sqlite3.Error):  # already closed
                connection.interrupt()


def _sqlite_library_or_none() -> SqliteLibrary | None:
    try:
        return SqliteLibrary()
    except (OSError, AttributeError, ImportError):
        return None


def _execute(connection: sqlite3.Connection, one: Execution) -> list[object]:
    text, is_inside = one.text or "", connection.in_transaction
    if one.operation in ("commit", "rollback"):
        if is_inside:
            connection.execute(one.operation)
        return []
    if one.state == INSIDE and not is_inside and verb_of(text) not in BEGINS:
        connection.execute("BEGIN")
    if one.operation == "executescript":
        if is_inside:  # as the driver does
            connection.execute("COMMIT")
        for statement in split_script(text):
            connection.execute(statement).fetchall()
        return []
    if one.operation == "executemany":
        connection.executemany(text, one.parameters or ())  # type: ignore[arg-type]
        return []
    cursor = connection.execute(text, one.parameters or ())  # type: ignore[arg-type]
    return list(islice(cursor, one.rows))


def split_script(script: str) -> list[str]:
    """Return the statements of a script. sqlite3.complete_statement() decides where a statement
    ends.
    """
    found: list[str] = []
    start = 0
    while (end := script.find(";", start)) >= 0:
        while not sqlite3.complete_statement(script[start : end + 1]):
            end = script.find(";", end + 1)
            if end < 0:
                return [*found, script[start:]]
        found.append(script[start : end + 1])
        start = end + 1
    return [*found, script[start:]]


def executions_on_database(order: PlayOrder) -> list[Execution]:
    """Return the workload's executions on the recorded database, by start."""
    operations = ("execute", "executemany", "executescript", "commit", "rollback", "close")
    return [
        one
        for one in read_workload(order.recorded_trace).executions
        if one.database == order.recorded_database and one.operation in operations
    ]


def group_by_transaction(executions: Iterable[Execution]) -> list[list[Execution]]:
    """Group executions into transactions, because each transaction must run on one connection."""
    open_units: dict[object, list[Execution]] = {}
    units: list[list[Execution]] = []
    for one in executions:
        if one.identity not in open_units:
            open_units[one.identity] = []
            units.append(open_units[one.identity])
        open_units[one.identity].append(one)
        if one.state == OUTSIDE or one.operation == "close":
            del open_units[one.identity]
    return units


def play_workload(order: PlayOrder) -> ReplayResult:
    """Play a workload, and add up the results of its threads."""
    executions = executions_on_database(order)
    players = [Player(order) for _ in range(order.workers)]
    threading.Thread(
        target=watch_players, args=(players,), name="queryprof watches", daemon=True
    ).start()
    output = order.output_trace
    with queryprof.recorder.api.profile(output) if output else nullcontext():
        began_unix_s = time.time()
        if order.workers == 1 and not order.seconds:
            _play_in_turn(executions, players[0])
        else:
            _play_together(order, executions, players)
        played = ReplayResult(began_unix_s=began_unix_s, ended_unix_s=time.time())
    for player in players:
        played.add(player.played)
    return played


def watch_players(players: Sequence[Player]) -> None:
    """Interrupt executions that take too long. This never returns."""
    while True:
        time.sleep(LOOK_S)
        for player in players:
            player.interrupt()


def _play_in_turn(executions: Sequence[Execution], player: Player) -> None:
    ends = {one.identity: number for number, one in enumerate(executions)}
    for number, one in enumerate(executions):
        player.play(one, keeps_rows=True)
        if ends[one.identity] == number:  # the program may never have called close()
            player.close_one(one.identity)
    player.close()


def _play_together(
    order: PlayOrder, executions: Sequence[Execution], players: Sequence[Player]
) -> None:
    """Play transactions in several threads. Each free thread takes the next transaction."""
    units = group_by_transaction(executions)
    turn, lock = count(), threading.Lock()
    end_s = time.perf_counter() + order.seconds

    def work(player: Player, number: int) -> None:
        while True:
            with lock:
                place = next(turn)
            if order.seconds and (time.perf_counter() >= end_s or not units):
                break
            if not order.seconds and place >= len(units):
                break
            for one in units[place % len(units)]:
                player.play(_execution_for_worker(one, number), keeps_rows=False)
        player.close()

    threads = [
        threading.Thread(target=work, args=(player, number), name=f"worker {number + 1}")
        for number, player in enumerate(players)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _execution_for_worker(one: Execution, worker: int) -> Execution:
    """Return the execution on the worker's own connection. A close becomes a rollback."""
    operation = "rollback" if one.operation == "close" else one.operation
    return replace(one, process=worker, connection=0, operation=operation)


def main(path: str) -> None:
    """Play an order, and write the result."""
    given = json.loads(Path(path).read_text())
    given["pragmas"] = tuple((name, value) for name, value in given["pragmas"])
    order = PlayOrder(**given)
    confine_process()
    limit_cpu_time(order.time_s)
    limit_file_size(order.file_bytes)
    gc.disable()
    try:
        played = play_workload(order)
    except QueryprofError as error:
        sys.exit(str(error))
    content = {one.name: getattr(played, one.name) for one in fields(played)}
    Path(order.result).write_text(json.dumps(content))
