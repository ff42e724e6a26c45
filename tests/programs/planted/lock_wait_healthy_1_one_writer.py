"""All writes go through one thread and a queue; many ask it."""
import hashlib
import os
import queue
import sqlite3
import threading


class Writer(threading.Thread):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.todo = path, queue.Queue()

    def run(self) -> None:
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("CREATE TABLE found (worker INTEGER, digest TEXT)")
        db.execute("BEGIN")
        while (item := self.todo.get()) is not None:
            db.execute("INSERT INTO found VALUES (?, ?)", item)
        db.execute("COMMIT")
        db.close()


def search(worker: int, writer: Writer) -> None:
    for number in range(1500):
        digest = hashlib.sha256(f"{worker} {number}".encode() * 3000).hexdigest()
        if digest.startswith("0"):
            writer.todo.put((worker, digest))


if os.path.exists("found.db"):
    os.remove("found.db")
writer = Writer("found.db")
writer.start()
workers = [threading.Thread(target=search, args=(n, writer)) for n in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
writer.todo.put(None)
writer.join()
os.remove("found.db")
