"""Read the processes of a trace file that may be damaged or untrusted."""

from __future__ import annotations

import os
import sqlite3
import stat

from queryprof.trace.header import read_only_mode, sqlite_uri

Identity = tuple[int, int, str]
"""A process: id, start of the recording in ns since 1970, host."""

MAX_VALUE_BYTES, MAX_PROCESSES = 1_000_000, 1_000_000
"""Limits for reading a file that is not checked yet."""


def identities_in(path: str) -> list[Identity]:
    """Return the processes in a trace; empty if it is damaged or not a trace."""
    from queryprof.core.recorder import muted

    with muted():
        try:
            path = os.path.realpath(path)
            if not stat.S_ISREG(os.stat(path).st_mode):
                return []
            connection = sqlite3.connect(
                sqlite_uri(path, read_only_mode(path)), uri=True, timeout=0
            )
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
                # Read only a table: in another user's file, a view, a virtual table or a computed
                # column might never end.
                is_table = connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'process' AND type = 'table'"
                    " AND rootpage > 0"
                    " AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo('process') WHERE hidden)"
                ).fetchone()
                query = "SELECT pid, start_unix_ns, host FROM process LIMIT ?"
                rows = connection.execute(query, (MAX_PROCESSES,)).fetchall() if is_table else []
            finally:
                connection.close()
        except (sqlite3.Error, OSError, ValueError):
            return []
    return [
        (int(pid), int(start), str(host)) for pid, start, host in rows if _are_integers(pid, start)
    ]


def is_worth_keeping(path: str) -> bool:
    """Return whether a trace written by this process is worth keeping.

    A trace is not worth keeping if its only process ended by itself and did nothing.
    """
    tables = ("aggregate", "error", "span", "loop", "handoff", "file_work")
    has_rows = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
    unseen = (
        "NOT clean_end OR unseen_files OR counters_off IS NOT NULL"
        " OR coalesce(unmeasured, '[]') != '[]'"
    )
    connection = sqlite3.connect(sqlite_uri(path, read_only_mode(path)), uri=True)
    try:
        odd = f"(SELECT count(*) != 1 OR total({unseen}) FROM process)"
        query = f"SELECT {has_rows} OR {odd}"
        return bool(connection.execute(query).fetchone()[0])
    finally:
        connection.close()


def _are_integers(*numbers: object) -> bool:
    return all(isinstance(number, int) for number in numbers)
