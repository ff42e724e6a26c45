"""Replay a workload's queries on a smaller past of its database: an eighth, a quarter, half, and
all of the rows.

Each statement is executed with up to MAX_SAMPLES of its recorded values, in a transaction that is
rolled back. A value compared with a column is replaced by the value of the same rank in the smaller
column, so that the newest order stays the newest order. The player runs in a separate process,
because a workload may be untrusted.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import queryprof.recorder.api
from queryprof.confined.process import confine_process, limit_cpu_time, limit_file_size
from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.errors import QueryprofError
from queryprof.replay.past import Ranks, count_rows_of, keep_first, tables_with_rowid
from queryprof.replay.player import Player, PlayOrder, executions_on_database, watch_players
from queryprof.replay.replaying import Replay, ReplaySetting, play_order
from queryprof.sql.clauses import READS, WRITES, verb_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queryprof.replay.workload import Execution

SHARES = (8, 4, 2, 1)
"""One copy per share: it has the first 1/share of each table's rows."""

PLAYER_CONNECTION = (0, 0)
"""The process and connection number of the player's only connection."""

MAX_SAMPLES, MAX_EXECUTIONS = 100, 10_000
"""The maximum number of executions of one statement, and of all statements, on each copy."""


@dataclass(frozen=True, slots=True)
class Past:
    """The result of a replay on the first rows.

    Attributes:
        share: the copy has the first 1/share of the rows.
        rows: the rows of each table, by its name in lower case.
        order: the statements of the workload by their first execution.
        trace: the path of the replay's trace.
        left_out: the number of executions that failed or could not be replayed.
    """

    share: int
    rows: dict[str, int]
    order: list[str]
    trace: str
    left_out: int


def replay_shares(found: Replay, folder: str, step: Callable[[], None]) -> list[Past]:
    """Replay the workload's queries on each share of the rows, smallest first.

    Args:
        folder: a directory for the traces.
        step: called after each replay.

    Raises:
        ProofError: a copy cannot be made, or the player fails.
    """
    pasts = []
    for share in SHARES:
        pasts.append(_play_past(found, share, os.path.join(folder, f"past-{share}.qprof")))
        step()
    return pasts


def _play_past(found: Replay, share: int, trace: str) -> Past:
    def with_share(order: PlayOrder) -> PlayOrder:
        return replace(order, share=share)

    result = play_order(found, ReplaySetting(), with_share, "queryprof.replay.growing", trace)
    return Past(share, result["rows"], result["order"], trace, result["left_out"])


def sample_executions(executions: Sequence[Execution]) -> list[Execution]:
    """Return the executions to play: up to the same number per statement, evenly spread over the
    workload.
    """
    by_text: dict[str | None, list[Execution]] = {}
    for one in executions:
        if one.operation == "execute" and one.text and verb_of(one.text) in READS | WRITES:
            by_text.setdefault(one.text, []).append(one)
    most = max(1, min(MAX_SAMPLES, MAX_EXECUTIONS // max(1, len(by_text))))
    chosen = [
        its[at * len(its) // min(most, len(its))]
        for its in by_text.values()
        for at in range(min(most, len(its)))
    ]
    return sorted(chosen, key=lambda one: one.start_unix_ns)


def _play(order: PlayOrder) -> dict[str, object]:
    """Reduce the copy to its share of the rows, and play the executions on it. Return fields of
    Past.
    """
    player = Player(order)
    with closing(sqlite3.connect(order.database, isolation_level=None)) as con:
        player.confine(con)
        if order.share > 1:
            keep_first(con, order.share)
        rows = {name.lower(): count_rows_of(con, name) for name in tables_with_rowid(con)}
    threading.Thread(
        target=watch_players, args=([player],), name="queryprof watches", daemon=True
    ).start()
    whole = sqlite3.connect(order.whole, uri=True)
    past = sqlite3.connect(order.database)
    player.confine(whole)
    player.confine(past)
    with closing(whole), closing(past), queryprof.recorder.api.profile(order.output_trace):
        ranks = Ranks(whole, past) if order.share > 1 else None
        player.begin(PLAYER_CONNECTION)
        executions = executions_on_database(order)
        for one in sample_executions(executions):
            player.play(_of_the_past(one, ranks), keeps_rows=False)
        player.close()
    statements = dict.fromkeys(_core.normal_form(one.text) for one in executions if one.text)
    left_out = player.played.left_out.total()
    return {"rows": rows, "order": list(statements), "left_out": left_out}


def _of_the_past(one: Execution, ranks: Ranks | None) -> Execution:
    """Return the execution on the player's only connection, with values of the same rank in the
    copy.
    """
    parameters = one.parameters
    if ranks and one.is_known and one.text and isinstance(parameters, tuple | dict):
        # The player later skips values that SQLite rejects.
        with muted(), suppress(sqlite3.Error, ValueError, OverflowError):
            parameters = ranks.values(one.text, parameters)
    process, connection = PLAYER_CONNECTION
    return replace(one, process=process, connection=connection, parameters=parameters, state=0)


def main(path: str) -> None:
    """Read a PlayOrder from a file, play it, and write the result."""
    given = json.loads(Path(path).read_text())
    given["pragmas"] = ()
    order = PlayOrder(**given)
    confine_process()
    limit_cpu_time(order.time_s)
    limit_file_size(order.file_bytes)
    try:
        result = _play(order)
    except (QueryprofError, sqlite3.Error) as error:
        sys.exit(str(error))
    Path(order.result).write_text(json.dumps(result))
