"""The player: executes a workload on a database, in a process of its own.

It is started as `python -m queryprof.replay.player ORDER`, where ORDER is a file: an `Order` as JSON.
Transactions are as they were: where a connection was in one after an execution that is no BEGIN, and not
before, the driver had begun it, and so does the player.
"""

from __future__ import annotations

import gc
import hashlib
import json
import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import count, islice
from pathlib import Path

import queryprof.api
from queryprof.trace.workload import INSIDE, OUTSIDE, Execution, read_workload

LOCK_TIMEOUT_S = 30.0
BEGINS = re.compile(r"\s*(?:BEGIN|SAVEPOINT)\b", re.IGNORECASE)
OF_OTHER_FILES = re.compile(r"\s*(?:ATTACH|DETACH|VACUUM\s+(?:\w+\s+)?INTO)\b", re.IGNORECASE)
SETTING = re.compile(r"\s*PRAGMA\s+(?:\w+\.)?(\w+)\s*=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Order:
    """What to play.

    Attributes:
        trace: beside which the workload is; recorded: the database's path there.
        database: the copy; pragmas: for each connection, name and value.
        workers: threads, each with connections of its own; 1: all in the recorded order.
        part, parts: this process plays every so many-th transaction, from that one on; others the rest.
        speed: 0: as fast as it goes; 1: at the recorded times; 2: twice as fast.
        seconds: so long, from the beginning again when it is over; 0: once.
        profile: where to keep a trace; "" nowhere. result: where to write a `Played` as JSON.
    """

    trace: str
    recorded: str
    database: str
    result: str
    pragmas: tuple[tuple[str, str], ...] = ()
    workers: int = 1
    part: int = 0
    parts: int = 1
    speed: float = 0.0
    seconds: float = 0.0
    profile: str = ""


@dataclass(slots=True)
class Played:
    """What was played.

    Attributes:
        database_s: in the driver, of all threads together.
        began_unix_s, ended_unix_s: the first and the last.
        left_out: how many executions, by reason.
        digests: of the rows of each text that reads, in their order.
    """

    executions: int = 0
    database_s: float = 0.0
    began_unix_s: float = float("inf")
    ended_unix_s: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """From the first to the last."""
        return max(self.ended_unix_s - self.began_unix_s, 1e-9)

    def add(self, other: Played) -> None:
        self.began_unix_s = min(self.began_unix_s, other.began_unix_s)
        self.ended_unix_s = max(self.ended_unix_s, other.ended_unix_s)
        self.executions += other.executions
        self.database_s += other.database_s
        self.left_out += other.left_out
        self.digests |= other.digests


class Player:
    """Plays executions in one thread, each recorded connection by one of its own."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._names = {name for name, _ in order.pragmas}
        self._connections: dict[object, sqlite3.Connection] = {}
        self._hashes: dict[str, hashlib.blake2b] = {}
        self.played = Played()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self.played.digests = {text: one.hexdigest() for text, one in self._hashes.items()}

    def close_one(self, identity: object) -> None:
        connection = self._connections.pop(identity, None)
        if connection:
            connection.close()

    def play(self, one: Execution, keeps_rows: bool) -> None:
        """Executes one execution; what cannot be executed is left out, and counted."""
        reason = self._why_not(one)
        if reason:
            self.played.left_out[reason] += 1
            return
        if one.operation == "close":
            self.close_one(one.identity)
            return
        connection = self._connections.get(one.identity) or self._opened(one.identity)
        start_ns = time.perf_counter_ns()
        try:
            rows = _execute(connection, one)
        except sqlite3.Error as error:
            reason = f"fails here, and did not when it was recorded: {error}"
            self.played.left_out[reason] += 1
            return
        finally:
            self.played.database_s += (time.perf_counter_ns() - start_ns) / 1e9
        self.played.executions += 1
        if rows and keeps_rows and one.text:
            found = self._hashes.setdefault(one.text, hashlib.blake2b(digest_size=16))
            found.update(repr(rows).encode("utf-8", "surrogatepass"))

    def _why_not(self, one: Execution) -> str:
        text = one.text or ""
        if one.failed:
            return "failed when it was recorded"
        if not one.is_known:
            return "has values that were not recorded"
        setting = SETTING.match(text)
        if OF_OTHER_FILES.match(text) or (setting and setting[1].lower() in self._names):
            return "is about other files, or sets what is set here"
        return ""

    def _opened(self, identity: object) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._order.database,
            timeout=LOCK_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        # A workload may come from others: it must not write to other files (VACUUM INTO attaches, too).
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for name, value in self._order.pragmas:
            connection.execute(f"PRAGMA {name} = {value}").fetchall()
        self._connections[identity] = connection
        return connection


def _execute(connection: sqlite3.Connection, one: Execution) -> list[object]:
    text, is_inside = one.text or "", connection.in_transaction
    if one.operation in ("commit", "rollback"):
        if is_inside:
            connection.execute(one.operation)
        return []
    if one.state == INSIDE and not is_inside and not BEGINS.match(text):
        connection.execute("BEGIN")
    if one.operation == "executescript":
        connection.executescript(text)
        return []
    if one.operation == "executemany":
        connection.executemany(text, one.parameters or ())  # type: ignore[arg-type]
        return []
    cursor = connection.execute(text, one.parameters or ())  # type: ignore[arg-type]
    return list(islice(cursor, one.rows))


def executions_of(order: Order) -> list[Execution]:
    """The executions on the database, in order."""
    operations = ("execute", "executemany", "executescript", "commit", "rollback", "close")
    return [
        one
        for one in read_workload(order.trace).executions
        if one.database == order.recorded and one.operation in operations
    ]


def units_of(executions: Iterable[Execution]) -> list[list[Execution]]:
    """The executions as transactions: what must be executed together, by one connection."""
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


def play(order: Order) -> Played:
    """Plays a workload, and adds up what its threads did."""
    executions = executions_of(order)
    with queryprof.api.profile(order.profile) if order.profile else nullcontext():
        began_unix_s = time.time()
        players = (
            _play_in_turn(order, executions)
            if order.workers == order.parts == 1 and not order.seconds
            else _play_together(order, executions)
        )
        played = Played(began_unix_s=began_unix_s, ended_unix_s=time.time())
    for player in players:
        played.add(player.played)
    return played


def _play_in_turn(order: Order, executions: Sequence[Execution]) -> list[Player]:
    player = Player(order)
    ends = {one.identity: number for number, one in enumerate(executions)}
    start_s = time.perf_counter()
    for number, one in enumerate(executions):
        if order.speed:
            due_s = (one.start_unix_ns - executions[0].start_unix_ns) / 1e9 / order.speed
            time.sleep(max(0.0, due_s - (time.perf_counter() - start_s)))
        player.play(one, keeps_rows=True)
        if ends[one.identity] == number:  # the garbage collector may have closed it, unseen
            player.close_one(one.identity)
    player.close()
    return [player]


def _play_together(order: Order, executions: Sequence[Execution]) -> list[Player]:
    """Transactions are dealt to threads as these are free."""
    units = units_of(executions)[order.part :: order.parts]
    turn, lock = count(), threading.Lock()
    players = [Player(order) for _ in range(order.workers)]
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
                player.play(_as_of(one, number), keeps_rows=False)
        player.close()

    threads = [
        threading.Thread(target=work, args=(player, number), name=f"worker {number + 1}")
        for number, player in enumerate(players)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return players


def _as_of(one: Execution, worker: int) -> Execution:
    """An execution by the worker's own connection; it is not closed in between."""
    operation = "rollback" if one.operation == "close" else one.operation
    return replace(one, process=worker, connection=0, operation=operation)


def main() -> None:
    """Plays an order, and writes what was played."""
    given = json.loads(Path(sys.argv[1]).read_text())
    given["pragmas"] = tuple((name, value) for name, value in given["pragmas"])
    order = Order(**given)
    gc.disable()
    played = play(order)
    content = {one.name: getattr(played, one.name) for one in fields(played)}
    Path(order.result).write_text(json.dumps(content))


if __name__ == "__main__":
    main()
