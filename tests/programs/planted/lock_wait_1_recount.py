# category: lock_wait
# fix: less in each|one thread|write-ahead|WAL
import os
import sqlite3
import threading

PATH = "club.db"
started = threading.Event()


def connect() -> sqlite3.Connection:
    db = sqlite3.connect(PATH, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    return db


def age_all() -> None:
    db = connect()
    db.execute("BEGIN IMMEDIATE")  # culprit
    started.set()
    for year in range(6):
        db.execute("UPDATE member SET points = points * 9 / 10 + ?, name = upper(name)", (year,))  # culprit
    db.execute("COMMIT")
    db.close()


class Desk(threading.Thread):
    def run(self) -> None:
        db = connect()
        started.wait()
        for member in range(5):
            db.execute("UPDATE member SET points = points + 1 WHERE id = ?", (member,))  # culprit
        db.close()


if os.path.exists(PATH):
    os.remove(PATH)
setup = connect()
setup.execute("CREATE TABLE member (id INTEGER PRIMARY KEY, name TEXT, points INTEGER)")
setup.execute("BEGIN")
setup.executemany("INSERT INTO member VALUES (?, ?, ?)", ((i, f"member {i}", i % 99) for i in range(120_000)))
setup.execute("COMMIT")
setup.close()
desks = [Desk() for _ in range(3)]
for desk in desks:
    desk.start()
age_all()
for desk in desks:
    desk.join()
os.remove(PATH)
