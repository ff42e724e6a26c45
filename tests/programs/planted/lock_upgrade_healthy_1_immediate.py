# healthy: reads before it writes, but begins IMMEDIATE; two threads take turns
import hashlib
import os
import sqlite3
import threading

PATH = "queue.db"


def worker(name, done):
    db = sqlite3.connect(PATH, timeout=20, isolation_level=None)
    db.execute("PRAGMA synchronous = NORMAL")
    while (job := claim(db, name)) is not None:
        done.append(hashlib.pbkdf2_hmac("sha256", b"%d" % job, b"job", 40_000).hex())
    db.close()


def claim(db, name):
    db.execute("BEGIN IMMEDIATE")
    row = db.execute("SELECT id FROM job WHERE worker IS NULL LIMIT 1").fetchone()
    if row:
        db.execute("UPDATE job SET worker = ? WHERE id = ?", (name, row[0]))
    db.execute("COMMIT")
    return row and row[0]


if os.path.exists(PATH):
    os.remove(PATH)
setup = sqlite3.connect(PATH, isolation_level=None)
setup.execute("PRAGMA journal_mode = WAL")
setup.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, worker TEXT)")
setup.execute("BEGIN")
setup.executemany("INSERT INTO job VALUES (?, NULL)", ((n,) for n in range(30)))
setup.execute("COMMIT")
done = []
threads = [threading.Thread(target=worker, args=(name, done)) for name in ("a", "b")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(done) == 30
