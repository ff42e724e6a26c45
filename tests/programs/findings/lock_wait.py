import sqlite3
import tempfile
import threading
import time
from pathlib import Path

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER)")
setup.executemany("INSERT INTO item VALUES (?, 0)", [(i,) for i in range(60_000)])
setup.commit()
setup.close()
recounts = threading.Event()


def sleeps_of(thread: threading.Thread) -> int:
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def is_open() -> bool:
    """SQLite calls it, with the lock: until each seller has slept five times for it."""
    if not recounts.is_set():
        before = [sleeps_of(seller) for seller in sellers]
        recounts.set()
        while any(sleeps_of(one) < slept + 5 for one, slept in zip(sellers, before, strict=True)):
            time.sleep(0.002)
    return True


def recount() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.create_function("is_open", 0, is_open, deterministic=True)
    db.execute("PRAGMA synchronous = OFF")  # or every writer holds the lock long on a slow disk
    for _ in range(10):
        db.execute("UPDATE item SET stock = 1 + stock WHERE is_open()")  # culprit
    db.close()


def sell() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")  # or every writer holds the lock long on a slow disk
    recounts.wait()
    for number in range(5):
        db.execute("UPDATE item SET stock = stock - 1 WHERE id = ?", (number,))
    db.close()


sellers = [threading.Thread(target=sell) for _ in range(2)]
for thread in sellers:
    thread.start()
recount()
for thread in sellers:
    thread.join()
