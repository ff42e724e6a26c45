"""Work that runs queries, and its recordings."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

from queryprof.model import Profile, Span


def ask(number: int = 1) -> int:
    connection = sqlite3.connect(":memory:")
    (found,) = connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()
    return int(found)


def span_of(profile: Profile, name: str) -> Span:
    (found,) = [span for span in profile.spans if span.name == name]
    return found


def database(path: Path, mode: str = "delete") -> Path:
    """Create a file with a table of 2,000 rows."""
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(2000)))
    db.commit()
    db.close()
    return path


LONGEST_S = 60.0
"""The longest wait for an event."""

SLEEPS = 5
"""Sleeps of SQLite's busy handler: a thread that has slept this often since it was about to request
a lock was refused. A few of the sleeps may be waits for the GIL.
"""


def sleeps_of(task: str) -> int:
    """Return how often a thread has yielded its processor. `task` is its folder in /proc."""
    status = Path("/proc", task, "status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def until_refused(task: str) -> None:
    """Wait until a thread that is about to request a lock sleeps for it."""
    least, end_s = sleeps_of(task) + SLEEPS, time.monotonic() + LONGEST_S
    while sleeps_of(task) < least and time.monotonic() < end_s:
        time.sleep(0.002)


PENDING_BYTE = 0x40000000
"""The byte of a database that a writer locks before it waits for readers
(https://www.sqlite.org/fileformat2.html#the_lock_byte_page).
"""


def until_pending(path: str) -> None:
    """Wait until a writer of this process has the pending lock (proc_locks(5))."""
    where = f":{os.stat(path).st_ino} {PENDING_BYTE} "
    end_s = time.monotonic() + LONGEST_S
    while where not in Path("/proc/locks").read_text() and time.monotonic() < end_s:
        time.sleep(0.001)


def until_ended(thread: threading.Thread) -> None:
    """Wait until the system's thread has ended: join() returns earlier."""
    thread.join()
    end_s = time.monotonic() + LONGEST_S
    while os.path.exists(f"/proc/self/task/{thread.native_id}") and time.monotonic() < end_s:
        time.sleep(0.001)
