"""Replay a workload on fresh copies of a database, with different settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from queryprof.confined.folder import temporary_folder
from queryprof.errors import ProofError
from queryprof.program.database_schema import read_only_uri, why_unreadable
from queryprof.replay.player import FAILS_HERE, PlayOrder, ReplayResult
from queryprof.replay.workload import Execution, Workload, read_workload

FILE_PRAGMAS = frozenset({"page_size", "journal_mode", "auto_vacuum"})
"""Pragmas that are stored in the database file. They are set once, before the replay."""

PACKAGE = str(Path(__file__).parents[1])
PLAYER = (
    "import sys; from importlib.util import find_spec\n"
    "find_spec('queryprof') or sys.path.append(sys.argv[1])\n"
    "from importlib import import_module; import_module(sys.argv[3]).main(sys.argv[2])"
)
"""Source code of the player's process. It runs with `python -I`, so it may need the path to find
the package.
"""

BASE_TIME_S, TIME_SHARE = 3600.0, 100.0
"""The limit of a player's CPU time is BASE_TIME_S plus TIME_SHARE times the recorded time."""

MAX_TIME_S = 7 * 24 * 3600.0
"""The maximum CPU time limit, because an untrusted workload may contain any duration."""

BASE_FILE_BYTES, FILE_SHARE = 1 << 30, 4
"""The size limit of a file is BASE_FILE_BYTES plus FILE_SHARE times the size of database and
workload.
"""

NAME = re.compile(r"\w+")
VALUE = re.compile(r"-?\w+")


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """The settings of a replay.

    Attributes:
        pragmas: (name, value) pairs.
        indexes: SQL to execute on the copy before the replay.
        library: a shared library of SQLite to load instead of Python's own.
    """

    pragmas: tuple[tuple[str, str], ...] = ()
    indexes: tuple[str, ...] = ()
    library: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """A workload, and the database to replay it on.

    Attributes:
        recorded: the path of the database in the workload. recorded_s: total recorded time of its
            executions. is_cut: whether the workload reached its size limit. sites: the first call
            site ("file:line") of each statement.
        bytes: size of the workload's files.
    """

    trace: str
    database: str
    recorded: str
    executions: int
    recorded_s: float
    is_cut: bool
    sites: Mapping[str, str]
    bytes: int


def load_replay(trace: str, database: str) -> Replay:
    """Find the workload of a trace for a database.

    Raises:
        TraceError: there is no workload, or it is damaged.
        ProofError: the database does not exist, or the workload belongs to other databases.
    """
    if not Path(database).is_file():
        why = "is not a regular file" if Path(database).exists() else "no such file"
        raise ProofError(f"{database}: {why}")
    workload = read_workload(trace)
    recorded = _recorded_path(workload, database)
    of_it = [one for one in workload.executions if one.database == recorded]
    return Replay(
        trace,
        database,
        recorded,
        len(of_it),
        sum(max(0, one.duration_ns) for one in of_it) / 1e9,
        workload.is_cut,
        _call_sites(of_it),
        workload.bytes,
    )


def _call_sites(executions: Iterable[Execution]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in executions:
        if one.text and one.path:
            found.setdefault(one.text, f"{os.path.basename(one.path[0].file)}:{one.path[0].line}")
    return found


def _recorded_path(workload: Workload, database: str) -> str:
    found = Counter(one.database for one in workload.executions if one.database)
    wanted = os.path.realpath(database)
    for path in found:
        if os.path.realpath(path) == wanted:
            return path
    if len(found) == 1:
        return next(iter(found))  # `database` is a copy
    listed = ", ".join(path for path, _ in found.most_common(3))
    if not listed:
        is_known = any(one.database is not None for one in workload.executions)
        listed = "none with a file" if is_known else "its driver does not report which"
    raise ProofError(f"{database}: the workload belongs to other databases: {listed}")


def parse_pragma(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE. Raises ProofError."""
    name, _, value = text.partition("=")
    if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
        raise ProofError(f"--pragma {text}: write NAME=VALUE, as in journal_mode=wal")
    return name.lower(), value.lower()


def play_on_copy(
    replay: Replay,
    setting: ReplaySetting,
    profile: str = "",
    workers: int = 1,
    seconds: float = 0.0,
) -> ReplayResult:
    """Play a workload on a fresh copy of its database, and remove the copy afterwards.

    Args:
        profile: where to keep a trace; "" for none.
        workers: the number of threads that play transactions.
        seconds: play repeatedly for this time; 0 to play once.

    Raises:
        ProofError: the copy cannot be made, the player fails, or the workload belongs to another
            database.
    """

    def changed(order: PlayOrder) -> PlayOrder:
        return replace(
            order,
            pragmas=tuple(one for one in setting.pragmas if one[0] not in FILE_PRAGMAS),
            workers=workers,
            seconds=seconds,
            time_s=_most_s(workers * (replay.recorded_s + seconds)),
        )

    made = play_order(replay, setting, changed, "queryprof.replay.player", profile)
    found = ReplayResult(**{**made, "left_out": Counter(made["left_out"])})
    _refuse_failing_workload(replay, found)
    return found


def play_order(
    replay: Replay,
    setting: ReplaySetting,
    changed: Callable[[PlayOrder], PlayOrder],
    module: str,
    profile: str = "",
) -> dict[str, Any]:
    """Start a player on a fresh copy, wait for its end, and return its result.

    Args:
        changed: a function that adapts the order.
        module: the player's module, whose main() gets the path of the order.
        profile: where to keep a trace; "" for none.

    Raises:
        ProofError: the copy cannot be made, or the player fails.
    """
    with _temporary_folder() as folder:
        copy = os.path.join(folder, "copy.db")
        _copy_database(replay.database, copy, setting)
        order = changed(
            PlayOrder(
                recorded_trace=os.path.abspath(replay.trace),
                recorded_database=replay.recorded,
                database=copy,
                result=os.path.join(folder, "result"),
                output_trace=os.path.join(folder, "replayed.qprof") if profile else "",
                time_s=_most_s(replay.recorded_s),
                file_bytes=BASE_FILE_BYTES + FILE_SHARE * (os.path.getsize(copy) + replay.bytes),
                whole=read_only_uri(replay.database),
            )
        )
        player = _start(order, setting, module)
        try:  # kill the player if this process is interrupted
            errors = player.stderr.read() if player.stderr else ""
            player.wait()
        finally:
            player.kill()
            player.communicate()
        if player.returncode:
            lines = errors.strip().splitlines()
            reason = lines[-1] if lines else f"status {player.returncode}"
            raise ProofError(f"replay: {reason}")
        if profile:
            shutil.move(order.output_trace, profile)
        found: dict[str, Any] = json.loads(Path(order.result).read_text())
        return found


def _most_s(recorded_s: float) -> float:
    return min(BASE_TIME_S + TIME_SHARE * recorded_s, MAX_TIME_S)


@contextmanager
def _temporary_folder() -> Iterator[str]:
    """Yield a temporary folder for a copy, and remove the folder at the end. Raises ProofError."""
    try:
        with temporary_folder() as folder:
            yield folder
    except OSError as error:
        raise ProofError(f"replay: {error}") from error


def _refuse_failing_workload(replay: Replay, found: ReplayResult) -> None:
    """Raise ProofError if most of the workload failed, for example because the schema is
    different.
    """
    missing = [
        reason
        for reason in found.left_out
        if "no such table" in reason or "no such column" in reason
    ]
    if sum(found.left_out[reason] for reason in missing) > found.executions:
        what = missing[0].rpartition("no such ")[2]
        raise ProofError(
            f"{replay.database}: no such {what.replace(':', '')}, so most of the workload fails;"
            " use a copy from before the recording"
        )
    failing = Counter({one: n for one, n in found.left_out.items() if one.startswith(FAILS_HERE)})
    skipped = failing if failing.total() > found.statements else found.left_out
    if skipped.total() and (skipped is failing or not found.statements):
        (reason, count), *_ = skipped.most_common()
        raise ProofError(
            f"{replay.database}: most of the workload cannot be replayed ({count:,} executions):"
            f" {reason}"
        )


def _start(order: PlayOrder, setting: ReplaySetting, module: str) -> subprocess.Popen[str]:
    """Start a player process. It ends after it has written its result."""
    path = f"{order.result}-order"
    Path(path).write_text(json.dumps(asdict(order)))
    environment = {**os.environ, "QUERYPROF": "", "QUERYPROF_WORKLOAD": ""}
    if setting.library:
        environment["LD_PRELOAD"] = os.path.abspath(setting.library)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", PLAYER, os.path.dirname(PACKAGE), path, module],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _copy_database(database: str, copy: str, setting: ReplaySetting) -> None:
    try:
        source = sqlite3.connect(read_only_uri(database), uri=True)
        target = sqlite3.connect(copy, isolation_level=None)
        try:
            _back_up(database, source, target)
            for name, value in setting.pragmas:
                if name in FILE_PRAGMAS - {"journal_mode"}:
                    target.execute("PRAGMA journal_mode = delete").fetchall()
                    target.execute(f"PRAGMA {name} = {value}").fetchall()
                    target.execute("VACUUM")
            for name, value in setting.pragmas:
                if name == "journal_mode":
                    target.execute(f"PRAGMA journal_mode = {value}").fetchall()
            for sql in setting.indexes:
                target.execute(sql)
        finally:
            target.close()
            source.close()
    except sqlite3.Error as error:
        raise ProofError(why_unreadable(database, str(error))) from error


def _back_up(database: str, source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy a database. Raises ProofError if the database cannot be read."""
    try:
        source.backup(target, progress=_refuse_locked)
    except sqlite3.Error as error:
        raise ProofError(why_unreadable(database, str(error))) from error


def _refuse_locked(status: int, _remaining: int, _pages: int) -> None:
    """Stop the backup if the database is locked. It would otherwise retry forever."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise sqlite3.OperationalError("database is locked")


def texts_with_different_rows(runs: Sequence[ReplayResult]) -> list[str]:
    """Return the statements whose rows differ between replays."""
    texts = {text for run in runs for text in run.digests}
    return sorted(text for text in texts if len({run.digests.get(text) for run in runs}) > 1)
