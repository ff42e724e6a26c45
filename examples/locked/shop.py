"""A job holds the write lock while it talks to a supplier, and an order is refused.

queryprof run --explain-locks examples/locked/shop.py
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import traceback
from pathlib import Path

DATABASE = "shop.db"


def supplier(called: threading.Event, refused: threading.Event) -> int:
    """A slow service: it answers after the order below was refused."""
    called.set()
    refused.wait(30)
    return 7


def sync_stock(called: threading.Event, refused: threading.Event) -> None:
    """The job: it writes, and calls the supplier before it commits."""
    with sqlite3.connect(DATABASE) as db:
        db.execute("UPDATE stock SET pieces = pieces - 1")
        pieces = supplier(called, refused)
        db.execute("UPDATE stock SET pieces = ?", (pieces,))


def order(item: int) -> None:
    """Insert an order. SQLite waits for the lock for 0.2 s."""
    with sqlite3.connect(DATABASE, timeout=0.2) as db:
        db.execute("INSERT INTO orders (item) VALUES (?)", (item,))


def main() -> None:
    Path(DATABASE).unlink(missing_ok=True)
    with sqlite3.connect(DATABASE) as db:
        db.execute("CREATE TABLE stock (item INTEGER PRIMARY KEY, pieces INTEGER)")
        db.execute("CREATE TABLE orders (item INTEGER)")
        db.executemany("INSERT INTO stock VALUES (?, 9)", [(item,) for item in range(100)])
    called, refused = threading.Event(), threading.Event()
    job = threading.Thread(target=sync_stock, args=(called, refused))
    job.start()
    called.wait(30)
    try:
        order(3)
    except sqlite3.OperationalError:
        traceback.print_exc(file=sys.stdout)
    refused.set()
    job.join()
    order(3)


main()
